//! The functions of `sqlite-vec`, on every connection of this process.

#![allow(unsafe_code)]

use std::{ffi::c_int, sync::LazyLock};

use libsqlite3_sys::{SQLITE_OK, sqlite3, sqlite3_api_routines, sqlite3_auto_extension};

/// What SQLite calls for each connection that it opens.
type Initialise =
    unsafe extern "C" fn(*mut sqlite3, *mut *mut std::ffi::c_char, *const sqlite3_api_routines) -> c_int;

static RESULT: LazyLock<c_int> = LazyLock::new(|| {
    let declared = sqlite_vec::sqlite3_vec_init as *const ();
    // SAFETY: `sqlite-vec` declares its entry point without the arguments that it takes. In C it is
    // `int sqlite3_vec_init(sqlite3 *, char **, const sqlite3_api_routines *)`, which is `Initialise`.
    let initialise = unsafe { std::mem::transmute::<*const (), Initialise>(declared) };
    // SAFETY: the function is linked in and never goes away, and SQLite may be called from any thread.
    unsafe { sqlite3_auto_extension(Some(initialise)) }
});

/// Has connections that are opened from now on know the functions.
///
/// # Errors
/// When SQLite refuses, which it does for want of memory alone.
pub(super) fn register() -> Result<(), String> {
    match *RESULT {
        SQLITE_OK => Ok(()),
        code => Err(format!("sqlite-vec cannot be registered (SQLite says {code})")),
    }
}
