//! Output formats: tables and JSON.
