//! Tells the kit which compiler it is built with, for its hello.

use std::process::Command;

fn main() {
    let compiler = std::env::var_os("RUSTC").expect("Cargo names the compiler");
    let said = Command::new(compiler).arg("--version").output().expect("a compiler that runs");
    println!("cargo:rustc-env=KIT_COMPILER={}", String::from_utf8_lossy(&said.stdout).trim());
}
