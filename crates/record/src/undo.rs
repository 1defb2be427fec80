//! Settings that a run changed because it was asked to (`--apply`), and how they are put
//! back: a journal that survives a crash, reference-counted over concurrent runs.
