//! The first process of a guest: see the crate `guest`. Built beside `mmtwin`, which packs it into the guest's initramfs.

use std::process::ExitCode;

fn main() -> ExitCode {
    guest::main()
}
