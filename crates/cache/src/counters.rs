//! What a cache has done since it was attached. The engine counts, and only its driver reads and
//! shows: the engine decides nothing by a figure.

/// Counters; each only grows. Frames and requests of prefetches are counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads.
    pub reads: u64,
    /// Bytes of reads.
    pub read_bytes: u64,
    /// Writes and discards.
    pub writes: u64,
    /// Bytes of writes.
    pub write_bytes: u64,
    /// Reads that the cache answered alone.
    pub hits: u64,
    /// Bytes of these reads.
    pub hit_bytes: u64,
    /// Hits that did not begin where the read before ended: a disk would have moved its head.
    pub hit_seeks: u64,
    /// Reads of long sequential runs, which the disk answered.
    pub bailed_out: u64,
    /// Frames that were cached because they were read.
    pub filled: u64,
    /// Bytes of the volume that these added.
    pub filled_bytes: u64,
    /// Frames that were cached ahead.
    pub prefetched: u64,
    /// Bytes of the volume that these added.
    pub brought_bytes: u64,
    /// Bytes of the medium that frames take which were cached ahead.
    pub prefetched_bytes: u64,
    /// Frames that were not cached because they were requested for the first time.
    pub refused_first: u64,
    /// Frames that were not cached because the budget of the day is used up.
    pub refused_budget: u64,
    /// Frames that were not cached because no segment was free.
    pub refused_full: u64,
    /// Frames that were not cached because they were written meanwhile.
    pub raced: u64,
    /// Frames that were dropped because they were written.
    pub invalidated: u64,
    /// Frames that were evicted.
    pub evicted: u64,
    /// Frames that were moved when their segment was reclaimed.
    pub moved: u64,
    /// Segments that were reclaimed.
    pub reclaimed: u64,
    /// Bytes written to the medium.
    pub medium_bytes: u64,
    /// Reads and writes of the medium that failed or took too long.
    pub medium_errors: u64,
    /// Frames that were not those that were written.
    pub medium_wrong: u64,
    /// Records written to the journal.
    pub records: u64,
    /// Lists of fresh frames written to the journal.
    pub bases: u64,
}
