//! A recording as text for other programs: CSV and JSON.
