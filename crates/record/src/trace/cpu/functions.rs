//! Functions of the kernel by what a processor does in them, from /proc/kallsyms by name.
//!
//! Names that begin alike do alike (`ext4_`, `tcp_`), so rules are beginnings; the longest one that
//! fits holds. Neighbours with the same meaning are one range, which leaves a few thousand of a
//! hundred thousand lines.

use crate::trace::stack::kept::{self, KeptTable};
use model::recording::{CallShare, SampledPart};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::{Mutex, OnceLock};

/// Beginnings of names, separated by white space; one that ends with `$` is a whole name.
const PLACES: &[(SampledPart, &str)] = &[
    (
        SampledPart::Interrupt,
        "common_interrupt __common_interrupt sysvec_ asm_sysvec_ handle_irq_event handle_edge_irq \
        handle_fasteoi_irq gic_handle_irq el1_interrupt el0_interrupt generic_handle_domain_irq",
    ),
    (SampledPart::Softirq, "__do_softirq handle_softirqs do_softirq run_ksoftirqd __irq_exit_rcu"),
    (
        SampledPart::Reclaim,
        "shrink_node shrink_lruvec shrink_folio_list shrink_slab do_shrink_slab try_to_free_pages \
        try_to_free_mem_cgroup_pages do_try_to_free_pages balance_pgdat try_to_shrink_lruvec \
        evict_folios",
    ),
    (SampledPart::FaultSwap, "do_swap_page"),
    (
        SampledPart::FaultCopyOnWrite,
        "do_wp_page wp_page_copy do_cow_fault do_huge_pmd_wp_page hugetlb_wp do_wp_huge_pmd",
    ),
    (
        SampledPart::FaultFirstTouch,
        "do_anonymous_page do_huge_pmd_anonymous_page __do_huge_pmd_anonymous_page \
        hugetlb_no_page alloc_anon_folio do_pte_missing",
    ),
    (
        SampledPart::FaultFile,
        "do_fault$ __do_fault do_read_fault do_shared_fault filemap_fault filemap_map_pages \
        do_fault_around finish_fault shmem_fault do_page_mkwrite",
    ),
    (
        SampledPart::FaultOther,
        "exc_page_fault asm_exc_page_fault do_user_addr_fault handle_mm_fault __handle_mm_fault \
        do_page_fault do_mem_abort do_translation_fault",
    ),
    (
        SampledPart::Call,
        "do_syscall_64 entry_SYSCALL_64 x64_sys_call do_int80 el0_svc invoke_syscall __x64_sys_ \
        __arm64_sys_ ksys_ do_syscall_x64 do_el0_svc syscall_exit_to_user_mode",
    ),
    (SampledPart::KernelThread, "kthread$ worker_thread process_one_work ret_from_fork"),
];

// A tick that comes while interrupts are off is seen where they are switched on again, which is at
// the end of a spin lock. So these say nothing; who waits for one is in its slow path.
const WORK: &[(SampledPart, &str)] = &[
    (
        SampledPart::KernelCopying,
        "copy_page copy_user_ rep_movs_alternative _copy_to_ _copy_from_ copy_to_user copy_from_user \
        __copy_user memcpy __memcpy memmove __memmove copy_mc_ copy_highpage copy_page_to_iter \
        copy_folio_from_iter copy_fpregs __arch_copy_ raw_copy_ __memcpy_flushcache copy_to_iter \
        copy_from_iter",
    ),
    (
        SampledPart::KernelClearing,
        "clear_page clear_user clear_huge_page clear_highpage folio_zero_ memset __memset \
        rep_stos_alternative __arch_clear_user kernel_init_pages init_on_",
    ),
    (
        SampledPart::KernelLocks,
        "native_queued_spin_lock_slowpath queued_spin_lock_slowpath __pv_queued_spin_lock_slowpath \
        queued_read_lock_slowpath queued_write_lock_slowpath osq_ rwsem_ down_read down_write up_read \
        up_write mutex_ __mutex_ ww_mutex_ rtlock_ rt_mutex_ pv_wait kvm_wait percpu_rwsem_ \
        __percpu_down_read lock_page_lruvec \
        folio_lruvec_lock",
    ),
    (
        SampledPart::KernelFileSystem,
        "ext4_ ext2_ jbd2_ xfs_ xlog_ btrfs_ f2fs_ fat_ exfat_ fuse_ nfs_ nfs4_ ovl_ iomap_ vfs_ \
        generic_file_ generic_perform_ generic_write_ filemap_ __filemap_ page_cache_ \
        balance_dirty_pages link_path_walk path_ walk_component lookup_ __lookup_ d_ __d_ dput dget \
        dentry_ iget iput inode_ __inode_ evict$ new_inode do_filp_open do_sys_openat2 open_ \
        filename_ getname strncpy_from_user fput __fput file_ alloc_file seq_ proc_ sysfs_ kernfs_ \
        pipe_ splice_ do_splice step_into may_open touch_atime fsnotify_ __fsnotify_ xas_ xa_ \
        mb_cache_ block_write_ __block_ mark_buffer_ alloc_inode readahead_ do_readahead read_pages \
        ksys_read ksys_write iov_iter_ statx cp_statx do_statx fs_ mnt_ __mnt_ simple_ dcache_ \
        shmem_ tmpfs_ rw_verify_ locks_ flock_ posix_lock_ notify_change attr_ security_file_ \
        security_inode_ crypto_ crc32",
    ),
    (
        SampledPart::KernelNetwork,
        "tcp_ __tcp_ ip_ __ip_ ip6_ ipv6_ inet_ inet6_ udp_ __udp_ skb_ __skb_ sock_ __sock_ sk_ \
        __sk_ netif_ __netif_ napi_ __napi_ dev_ __dev_ nf_ ipt_ nft_ unix_ net_ eth_ gro_ \
        loopback_ veth_ virtnet_ start_xmit br_ neigh_ fib_ rt_dst dst_ lock_sock release_sock \
        move_addr_to_ __sys_send __sys_recv ____sys_send ____sys_recv sch_ fq_ qdisc_ __qdisc_ \
        validate_xmit_ napi_gro_ e1000_ ixgbe_ i40e_ mlx5e_ ena_",
    ),
    (
        SampledPart::KernelBlock,
        "blk_ __blk_ bio_ __bio_ submit_bio __submit_bio nvme_ scsi_ sd_ virtblk_ virtqueue_ \
        virtio_queue_ vring_ vp_ dd_ bfq_ kyber_ sbitmap_ __sbitmap_ part_ bdev_ blkdev_ dm_ md_ \
        raid lo_ loop_ ata_ ahci_ zram_ lzo lz4 zstd_ LZ4_ ZSTD_ wbt_ ioc_ elv_ mmc_ ublk_",
    ),
    (
        SampledPart::KernelMemory,
        "__alloc_ alloc_ get_page_ rmqueue __rmqueue prep_new_page post_alloc_ free_ __free_ folio_ \
        __folio_ page_ __page_ lru_ mem_cgroup_ __mem_cgroup_ charge_ try_charge uncharge_ \
        refill_stock obj_cgroup_ memcg_ __memcg_ mod_ __mod_ zap_ unmap_ tlb_ __tlb_ flush_tlb_ \
        native_flush_tlb_ mmap_ __mmap_ do_mmap vma_ __vma_ mas_ mt_ mtree_ pte_ __pte_ pmd_ __pmd_ \
        pud_ p4d_ kmem_cache_ __kmem_cache_ kfree kmalloc __kmalloc slab_ __slab_ ___slab_ \
        get_partial_ put_cpu_partial anon_vma_ __anon_vma_ rmap_ workingset_ swap_ __swap_ \
        release_pages vmalloc vm_ exit_mmap dup_mm copy_mm copy_p madvise_ do_madvise isolate_ \
        compact_ khugepaged collapse_ handle_mm_fault __handle_mm_fault do_anonymous_page \
        do_user_addr_fault exc_page_fault lock_vma_ lock_mm_and_ find_vma mm_ move_page_tables \
        cgroup_rstat_ count_memcg_ add_to_swap shrink_ evict_folios try_to_unmap percpu_counter_",
    ),
    (
        SampledPart::KernelScheduling,
        "schedule __schedule finish_task_switch context_switch try_to_wake_up ttwu_ wake_up_ \
        __wake_up pick_next_ pick_task_ enqueue_ dequeue_ update_curr update_load_ __update_load_ \
        update_rq_ sched_ __sched_ select_task_ select_idle_ available_idle_ place_entity \
        reweight_ set_next_ put_prev_ check_preempt_ wakeup_preempt newidle_ sched_balance_ \
        load_balance hrtimer_ __hrtimer_ tick_ do_nanosleep futex_ __futex_ do_futex ep_ do_epoll_ \
        do_poll do_sys_poll do_select poll_ add_wait_ remove_wait_ prepare_to_wait finish_wait \
        psi_ cpuacct_ account_ cpufreq_ copy_process kernel_clone dup_task_ wake_up_new_task \
        do_exit do_group_exit release_task wait_ do_wait switch_mm __switch_to native_load_",
    ),
];

/// What a call to read or write does beside itself, wherever on the stack it is.
const SHARES: &[(CallShare, &str)] = &[
    (
        CallShare::Block,
        "submit_bio __submit_bio blk_finish_plug blk_flush_plug __blk_flush_plug blk_mq_",
    ),
    (
        CallShare::CacheFill,
        "page_cache_ra_ page_cache_sync_ page_cache_async_ force_page_cache_ do_page_cache_ra \
        ondemand_readahead page_cache_readahead ra_alloc_folio filemap_create_folio \
        filemap_add_folio __filemap_add_folio add_to_page_cache filemap_alloc_folio \
        filemap_read_folio filemap_read_page read_pages mpage_read",
    ),
];

/// Beginnings of the functions that are one system call, whose name follows.
const CALLS: &[&str] = &["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "ksys_", "__sys_"];
/// What the kernel calls otherwise than programs do.
const OTHER_NAMES: &[(&str, &str)] =
    &[("do_sys_openat2", "openat"), ("do_execveat_common", "execve"), ("kernel_clone", "clone")];

/// Which of two places on one stack decides: the smaller number.
fn weight(place: SampledPart) -> u8 {
    match place {
        SampledPart::Interrupt => 0,
        SampledPart::Softirq => 1,
        SampledPart::Reclaim => 2,
        SampledPart::FaultSwap => 3,
        SampledPart::FaultCopyOnWrite => 4,
        SampledPart::FaultFirstTouch => 5,
        SampledPart::FaultFile => 6,
        SampledPart::FaultOther => 7,
        SampledPart::Call => 8,
        SampledPart::KernelThread => 9,
        _ => 10,
    }
}

/// What a place is of a call that it came in.
fn call_share(place: SampledPart) -> Option<CallShare> {
    match place {
        SampledPart::Interrupt | SampledPart::Softirq => Some(CallShare::Interrupt),
        SampledPart::Reclaim => Some(CallShare::Reclaim),
        SampledPart::FaultFirstTouch
        | SampledPart::FaultCopyOnWrite
        | SampledPart::FaultFile
        | SampledPart::FaultSwap
        | SampledPart::FaultOther => Some(CallShare::Fault),
        _ => None,
    }
}

/// What one function says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FunctionRole {
    place: Option<SampledPart>,
    work: Option<SampledPart>,
    share: Option<CallShare>,
    call: Option<&'static str>,
}

/// What a sample says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Where the processor was, one of the origins.
    pub place: SampledPart,
    /// What the kernel worked at, one of the classes.
    pub work: SampledPart,
    pub call: Option<&'static str>,
    /// What it is of a call to read or write that is not the call itself.
    pub share: Option<CallShare>,
    /// The same of a page fault on a file.
    pub fault_share: Option<CallShare>,
}

/// Functions of the running kernel.
#[derive(Debug, Default)]
pub struct ProcessorFunctions {
    /// Where each range begins, in order; a range without a meaning too.
    ranges: Vec<(u64, FunctionRole)>,
}

impl ProcessorFunctions {
    /// Those of the running kernel, found on first use; none where it hides their addresses.
    pub fn of_kernel() -> &'static Self {
        static TABLE: OnceLock<ProcessorFunctions> = OnceLock::new();
        let rules = (PLACES, WORK, SHARES);
        TABLE.get_or_init(|| kept::of_kernel(&rules).unwrap_or_default())
    }

    fn read_symbols(mut source: impl BufRead) -> Self {
        let rules = Rules::new();
        let mut found: Vec<(u64, FunctionRole)> = Vec::new();
        let mut line = String::new();
        while source.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            let mut words = line.split_ascii_whitespace();
            let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
            if let (Some(address @ 1..), Some("t" | "T" | "w" | "W"), Some(name)) =
                (address, words.next(), words.next())
            {
                found.push((address, rules.role(name)));
            }
            line.clear();
        }
        found.sort_by_key(|(address, _)| *address);
        // Of several names at one address one that says something holds.
        found.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            if is_same && first.1 == FunctionRole::default() {
                first.1 = later.1;
            }
            is_same
        });
        found.dedup_by(|later, first| later.1 == first.1);
        Self { ranges: found }
    }

    fn role(&self, address: u64) -> FunctionRole {
        // A return address may be the first byte behind the function, never its first byte.
        let after = self.ranges.partition_point(|(start, _)| *start < address);
        let range = after.checked_sub(1).and_then(|index| self.ranges.get(index));
        range.map_or_else(FunctionRole::default, |(_, role)| *role)
    }

    /// What a stack says, from the innermost function outwards; an empty one is user code.
    pub fn judge(&self, is_kernel_thread: bool, frames: impl Iterator<Item = u64>) -> Seen {
        let (mut place, mut work, mut call) = (None::<SampledPart>, None, None);
        let mut share = None;
        let mut is_empty = true;
        for frame in frames.filter(|frame| *frame < u64::MAX - 4095) {
            is_empty = false;
            let role = self.role(frame);
            let lighter = |place: &SampledPart| {
                role.place.is_none_or(|other| weight(*place) <= weight(other))
            };
            if !place.as_ref().is_some_and(lighter) {
                place = role.place.or(place);
            }
            work = work.or(role.work);
            call = role.call.or(call);
            share = if share == Some(CallShare::Block) { share } else { role.share.or(share) };
        }
        let place = match place {
            None if is_empty && !is_kernel_thread => SampledPart::User,
            None if is_kernel_thread => SampledPart::KernelThread,
            None => SampledPart::Other,
            Some(place) => place,
        };
        let fault_share = share.filter(|_| place == SampledPart::FaultFile);
        let share = call_share(place).or(share);
        Seen { place, work: work.unwrap_or(SampledPart::KernelOther), call, share, fault_share }
    }
}

/// A word for nothing.
const NONE: &str = "-";

impl KeptTable for ProcessorFunctions {
    const FILE: &'static str = crate::run_directory::PROCESSOR_FUNCTIONS;

    fn find(symbols: BufReader<File>) -> Self {
        Self::read_symbols(symbols)
    }

    fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    fn write(&self) -> String {
        let line = |(start, role): &(u64, FunctionRole)| {
            let place = role.place.map_or(NONE, SampledPart::id);
            let work = role.work.map_or(NONE, SampledPart::id);
            let share = role.share.map_or(NONE, |share| CallShare::ALL[share as usize].1);
            format!("{start:x} {place} {work} {share} {}\n", role.call.unwrap_or(NONE))
        };
        self.ranges.iter().map(line).collect()
    }

    fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Self> {
        let ranges: Vec<(u64, FunctionRole)> = lines.map(kept_range).collect::<Option<_>>()?;
        ranges.is_sorted_by_key(|(start, _)| *start).then_some(Self { ranges })
    }
}

fn kept_range(line: &str) -> Option<(u64, FunctionRole)> {
    fn named<T: Copy>(all: &[(T, &str)], word: &str) -> Option<Option<T>> {
        if word == NONE {
            return Some(None);
        }
        all.iter().find(|(_, name)| *name == word).map(|(meaning, _)| Some(*meaning))
    }
    let mut words = line.split(' ');
    let start = u64::from_str_radix(words.next()?, 16).ok()?;
    let place = named(&SampledPart::ALL, words.next()?)?;
    let work = named(&SampledPart::ALL, words.next()?)?;
    let share = named(&CallShare::ALL, words.next()?)?;
    let call = words.next().filter(|call| *call != NONE);
    let role = FunctionRole { place, work, share, call: call.and_then(kept_call) };
    Some((start, role))
}

/// The rules by the first bytes of a name, longest first.
struct Rules {
    places: HashMap<u8, Vec<(&'static str, SampledPart)>>,
    work: HashMap<u8, Vec<(&'static str, SampledPart)>>,
    shares: HashMap<u8, Vec<(&'static str, CallShare)>>,
}

impl Rules {
    fn new() -> Self {
        Self { places: by_letter(PLACES), work: by_letter(WORK), shares: by_letter(SHARES) }
    }

    fn role(&self, symbol: &str) -> FunctionRole {
        // What a compiler added says nothing; padding before a function is no function.
        let name = symbol.split('.').next().unwrap_or_default();
        if name.starts_with("__pfx_") {
            return FunctionRole::default();
        }
        FunctionRole {
            place: longest(&self.places, name),
            work: longest(&self.work, name),
            share: longest(&self.shares, name),
            call: call_of(name),
        }
    }
}

fn by_letter<T: Copy>(groups: &[(T, &'static str)]) -> HashMap<u8, Vec<(&'static str, T)>> {
    let mut found: HashMap<u8, Vec<(&'static str, T)>> = HashMap::new();
    for (meaning, names) in groups {
        for name in names.split_ascii_whitespace() {
            let letter = name.as_bytes().first().copied().unwrap_or_default();
            found.entry(letter).or_default().push((name, *meaning));
        }
    }
    for rules in found.values_mut() {
        rules.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    }
    found
}

fn longest<T: Copy>(rules: &HashMap<u8, Vec<(&'static str, T)>>, name: &str) -> Option<T> {
    let fits = |rule: &&(&str, T)| match rule.0.strip_suffix('$') {
        Some(whole) => name == whole,
        None => name.starts_with(rule.0),
    };
    let letter = name.as_bytes().first()?;
    rules.get(letter)?.iter().find(fits).map(|(_, meaning)| *meaning)
}

/// The system call that a function is, as programs name it.
fn call_of(name: &str) -> Option<&'static str> {
    let renamed = OTHER_NAMES.iter().find(|(function, _)| *function == name);
    let call = match renamed {
        Some((_, call)) => call,
        None => CALLS.iter().find_map(|begin| name.strip_prefix(begin))?,
    };
    kept_call(call)
}

/// The name of a system call, held once and for good.
fn kept_call(call: &str) -> Option<&'static str> {
    static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let is_plain =
        call.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if !is_plain || call.len() > 32 {
        return None;
    }
    let mut names = NAMES.lock().ok()?;
    match names.binary_search(&call) {
        Ok(index) => Some(names[index]),
        Err(index) => {
            let kept: &'static str = Box::leak(call.to_owned().into_boxed_str());
            names.insert(index, kept);
            Some(kept)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "0000000000000000 A fixed\n\
        1000 T asm_exc_page_fault\n1100 T do_anonymous_page\n1200 t clear_page_erms\n\
        1300 T do_syscall_64\n1400 T __x64_sys_read\n1500 t ext4_file_read_iter\n\
        1600 T rep_movs_alternative\n1700 T handle_softirqs\n1800 T tcp_v4_rcv\n\
        1900 T try_to_free_pages\n1a00 T kthread\n1b00 T native_queued_spin_lock_slowpath\n\
        1c00 T something_else\n1d00 T filemap_add_folio\n1e00 T page_cache_ra_unbounded\n\
        1f00 T submit_bio_noacct\n";

    fn judge(frames: &[u64]) -> Seen {
        ProcessorFunctions::read_symbols(SYMBOLS.as_bytes()).judge(false, frames.iter().copied())
    }

    #[test]
    fn user_code_has_no_stack() {
        assert_eq!(judge(&[]).place, SampledPart::User);
    }

    #[test]
    fn a_first_touch_is_a_fault_that_clears() {
        let seen = judge(&[0x1210, 0x1110, 0x1010]);
        assert_eq!(
            (seen.place, seen.work),
            (SampledPart::FaultFirstTouch, SampledPart::KernelClearing)
        );
    }

    #[test]
    fn a_call_has_its_name_whatever_it_does() {
        let read = judge(&[0x1610, 0x1510, 0x1410, 0x1310]);
        assert_eq!((read.place, read.work), (SampledPart::Call, SampledPart::KernelCopying));
        assert_eq!(read.call, Some("read"));
        let reclaim = judge(&[0x1b10, 0x1910, 0x1510, 0x1410, 0x1310]);
        assert_eq!((reclaim.place, reclaim.work), (SampledPart::Reclaim, SampledPart::KernelLocks));
        assert_eq!(reclaim.call, Some("read"));
    }

    #[test]
    fn a_call_is_not_what_fills_the_cache_or_hands_over_requests() {
        let share = |frames: &[u64]| judge(frames).share;
        assert_eq!(share(&[0x1610, 0x1510, 0x1410, 0x1310]), None);
        assert_eq!(share(&[0x1d10, 0x1e10, 0x1410, 0x1310]), Some(CallShare::CacheFill));
        assert_eq!(share(&[0x1f10, 0x1e10, 0x1410, 0x1310]), Some(CallShare::Block));
        assert_eq!(share(&[0x1910, 0x1d10, 0x1410, 0x1310]), Some(CallShare::Reclaim));
        assert_eq!(share(&[0x1710, 0x1f10, 0x1410, 0x1310]), Some(CallShare::Interrupt));
    }

    #[test]
    fn what_interrupts_decides() {
        let seen = judge(&[0x1810, 0x1710, 0x1210, 0x1110, 0x1010]);
        assert_eq!((seen.place, seen.work), (SampledPart::Softirq, SampledPart::KernelNetwork));
    }

    #[test]
    fn what_is_kept_says_the_same() {
        let table = ProcessorFunctions::read_symbols(SYMBOLS.as_bytes());
        let again = ProcessorFunctions::read(table.write().lines()).unwrap();
        assert_eq!(again.ranges, table.ranges);
        for damaged in ["1000 user", "1000 user -", "x user - - -", "1000 no_such_place - - -"] {
            assert!(ProcessorFunctions::read(damaged.lines()).is_none(), "{damaged}");
        }
    }

    #[test]
    fn threads_of_the_kernel_are_their_own_place() {
        let table = ProcessorFunctions::read_symbols(SYMBOLS.as_bytes());
        let seen = table.judge(true, [0x1c10].into_iter());
        assert_eq!((seen.place, seen.work), (SampledPart::KernelThread, SampledPart::KernelOther));
    }

    #[test]
    fn this_kernel_has_functions_of_each_place_and_work() {
        let table = ProcessorFunctions::of_kernel();
        if table.ranges.is_empty() {
            return testkit::skip("/proc/kallsyms with addresses");
        }
        let classes = SampledPart::ALL.iter().skip(SampledPart::ORIGINS);
        for (work, name) in classes.take(SampledPart::CLASSES - 1) {
            assert!(table.ranges.iter().any(|(_, role)| role.work == Some(*work)), "{name}");
        }
        for place in [
            SampledPart::FaultFirstTouch,
            SampledPart::FaultFile,
            SampledPart::Softirq,
            SampledPart::Call,
        ] {
            assert!(table.ranges.iter().any(|(_, role)| role.place == Some(place)), "{place:?}");
        }
        let has = |call| table.ranges.iter().any(|(_, role)| role.call == Some(call));
        assert!(has("read") && has("mmap"));
    }
}
