//! What has been executed, where the program is measured: it is built with the feature `coverage`, and what counts of
//! it with `-C instrument-coverage`. Otherwise there is nothing to write.

/// Writes down what has been executed since it was last called, in a file of its own beside LLVM_PROFILE_FILE. What
/// is executed after the last call is written by the runtime of LLVM when the process exits.
#[cfg(feature = "coverage")]
pub(crate) fn write() {
    use std::ffi::{c_char, c_int, CString};
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    extern "C" {
        fn __llvm_profile_write_file() -> c_int;
        fn __llvm_profile_reset_counters();
        fn __llvm_profile_set_filename(pattern: *const c_char);
    }
    static FILES: AtomicU32 = AtomicU32::new(0);

    let Some(first) = std::env::var_os("LLVM_PROFILE_FILE") else { return };
    let name = format!("%p-{:06}.profraw", FILES.fetch_add(1, Ordering::Relaxed) + 1);
    let next = PathBuf::from(first).with_file_name(name);
    let next = CString::new(next.as_os_str().as_bytes()).expect("a path has no zeros");
    // SAFETY: these are the runtime's own functions, and it copies the name; one thread calls them, the one that
    // answers hello or reset
    unsafe {
        __llvm_profile_write_file();
        __llvm_profile_reset_counters();
        __llvm_profile_set_filename(next.as_ptr());
    }
}

#[cfg(not(feature = "coverage"))]
pub(crate) fn write() {}
