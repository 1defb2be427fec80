//! Whole copies of real trees.
