//! NSS with the certificate, the ticket keys and the key log of the host, and without the variables of the environment.
//!
//! The linker (`build.rs`) puts these functions in place of NSS's own.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::io::Write;
use std::ptr::{null, null_mut};

use gargalo_plugin::stack::{Config, host};

use crate::random;

const SUCCESS: c_int = 0;
const FAILURE: c_int = -1;

/// `SECItem`.
#[repr(C)]
struct Item {
    kind: c_int,
    data: *const u8,
    length: c_uint,
}

impl Item {
    fn of(data: &[u8]) -> Self {
        Self { kind: 0, data: data.as_ptr(), length: data.len() as c_uint }
    }
}

/// Types of NSS that are only pointed to.
type Any = *mut c_void;

unsafe extern "C" {
    fn CERT_GetDefaultCertDB() -> Any;
    fn CERT_NewTempCertificate(db: Any, der: *const Item, name: *const c_char, permanent: c_int, copy: c_int) -> Any;
    fn PK11_GetInternalSlot() -> Any;
    fn PK11_FreeSlot(slot: Any);
    fn PK11_FreeSymKey(key: Any);
    fn PK11_ImportSymKey(slot: Any, kind: c_ulong, origin: c_int, use_: c_ulong, key: *const Item, wincx: Any) -> Any;
    fn PK11_ImportDERPrivateKeyInfoAndReturnKey(
        slot: Any,
        der: *const Item,
        name: *const Item,
        public: *const Item,
        permanent: c_int,
        private: c_int,
        usage: c_uint,
        key: *mut Any,
        wincx: Any,
    ) -> c_int;
    fn fopencookie(cookie: Any, mode: *const c_char, functions: Cookie) -> Any;
    #[link_name = "__real_ssl3_CacheWrappedSecret"]
    fn real_wrap_secret(socket: Any, session: Any, secret: Any) -> c_int;
    #[link_name = "__real_ssl3_FillInCachedSID"]
    fn real_fill_session(socket: Any, session: Any, secret: Any) -> c_int;
    #[link_name = "__real_ssl3_GetWrappingKey"]
    fn real_wrapping_key(socket: Any, slot: Any, mechanism: c_ulong, wincx: Any) -> Any;
    #[link_name = "__real_fopen"]
    fn real_fopen(path: *const c_char, mode: *const c_char) -> Any;
}

/// A key of tickets.
struct Key(Any);

impl Key {
    fn new(bytes: &[u8], mechanism: c_ulong, operation: c_ulong) -> Self {
        /// `PK11_OriginUnwrap`.
        const GIVEN: c_int = 4;
        // SAFETY: the item lives until after the call.
        unsafe {
            let slot = PK11_GetInternalSlot();
            let key = PK11_ImportSymKey(slot, mechanism, GIVEN, operation, &Item::of(bytes), null_mut());
            PK11_FreeSlot(slot);
            Self(key)
        }
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the key is not null, and nothing else has it.
            unsafe { PK11_FreeSymKey(self.0) }
        }
    }
}

/// What a server has of its own in NSS.
pub struct Identity {
    certificate: Vec<u8>,
    private_key: Vec<u8>,
    name: [u8; 16],
    cipher: Key,
    mac: Key,
}

impl Identity {
    pub fn new(asked: &Config<'_>) -> Result<Self, String> {
        const AES_CBC: c_ulong = 0x1082;
        const SHA256_HMAC: c_ulong = 0x251;
        const ENCRYPT: c_ulong = 0x104;
        const SIGN: c_ulong = 0x108;
        let (cipher, mac) = asked.ticket_key.split_at_checked(32).ok_or("the ticket key is too short")?;
        let mut name = *b"NSS!............";
        name[4..].iter_mut().zip(cipher).zip(mac).for_each(|((n, a), b)| *n = a ^ b);
        Ok(Self {
            certificate: asked.certificate.to_vec(),
            private_key: asked.private_key.to_vec(),
            name,
            cipher: Key::new(cipher, AES_CBC, ENCRYPT),
            mac: Key::new(mac, SHA256_HMAC, SIGN),
        })
    }

    /// Runs a call with this as the identity of NSS's server.
    pub fn during<R>(this: &mut Option<Box<Self>>, work: impl FnOnce() -> R) -> R {
        PRESENT.replace(this.take());
        let result = work();
        *this = PRESENT.take();
        result
    }
}

thread_local! {
    static PRESENT: RefCell<Option<Box<Identity>>> = const { RefCell::new(None) };
}

fn present<R>(missing: R, work: impl FnOnce(&Identity) -> R) -> R {
    PRESENT.with_borrow(|present| present.as_ref().map_or(missing, |identity| work(identity)))
}

/// `PK11_FindCertFromNickname`: there is no database; every name is that of the server's certificate.
#[unsafe(export_name = "__wrap_PK11_FindCertFromNickname")]
extern "C" fn certificate(_name: *const c_char, _wincx: Any) -> Any {
    // SAFETY: NSS copies the bytes.
    present(null_mut(), |identity| unsafe {
        CERT_NewTempCertificate(CERT_GetDefaultCertDB(), &Item::of(&identity.certificate), null(), 0, 1)
    })
}

/// `PK11_FindKeyByAnyCert`.
#[unsafe(export_name = "__wrap_PK11_FindKeyByAnyCert")]
extern "C" fn private_key(_certificate: Any, wincx: Any) -> Any {
    /// `KU_ALL`.
    const ALL: c_uint = 0xff;
    present(null_mut(), |identity| {
        let mut key = null_mut();
        // SAFETY: the item lives until after the call, and the key is written to `key`.
        unsafe {
            let (slot, der) = (PK11_GetInternalSlot(), Item::of(&identity.private_key));
            PK11_ImportDERPrivateKeyInfoAndReturnKey(slot, &der, null(), null(), 0, 0, ALL, &mut key, wincx);
            PK11_FreeSlot(slot);
        }
        key
    })
}

/// `ssl_GetSelfEncryptKeys`: the keys of tickets, which NSS makes once for the process.
#[unsafe(export_name = "__wrap_ssl_GetSelfEncryptKeys")]
unsafe extern "C" fn ticket_keys(_socket: Any, name: *mut [u8; 16], cipher: *mut Any, mac: *mut Any) -> c_int {
    present(FAILURE, |identity| {
        // SAFETY: NSS gives places for the three; the keys live as long as the server.
        unsafe {
            name.write(identity.name);
            cipher.write(identity.cipher.0);
            mac.write(identity.mac.0);
        }
        if identity.cipher.0.is_null() || identity.mac.0.is_null() { FAILURE } else { SUCCESS }
    })
}

// In these three NSS makes, once for the process, the keys in which secrets of sessions are wrapped.

/// `ssl3_CacheWrappedSecret`.
#[unsafe(export_name = "__wrap_ssl3_CacheWrappedSecret")]
unsafe extern "C" fn wrap_secret(socket: Any, session: Any, secret: Any) -> c_int {
    // SAFETY: the arguments are NSS's.
    random::constant(|| unsafe { real_wrap_secret(socket, session, secret) })
}

/// `ssl3_FillInCachedSID`.
#[unsafe(export_name = "__wrap_ssl3_FillInCachedSID")]
unsafe extern "C" fn fill_session(socket: Any, session: Any, secret: Any) -> c_int {
    // SAFETY: as above.
    random::constant(|| unsafe { real_fill_session(socket, session, secret) })
}

/// `ssl3_GetWrappingKey`.
#[unsafe(export_name = "__wrap_ssl3_GetWrappingKey")]
unsafe extern "C" fn wrapping_key(socket: Any, slot: Any, mechanism: c_ulong, wincx: Any) -> Any {
    // SAFETY: as above.
    random::constant(|| unsafe { real_wrapping_key(socket, slot, mechanism, wincx) })
}

/// The name of the file to which NSS writes secrets.
const SECRETS: &CStr = c"gargalo";

/// `PR_GetEnvSecure`: NSS sees no variable of the environment but that of the key log.
#[unsafe(export_name = "__wrap_PR_GetEnvSecure")]
unsafe extern "C" fn variable(name: *const c_char) -> *const c_char {
    // SAFETY: NSS gives a text that ends with 0.
    let is_log = unsafe { CStr::from_ptr(name) } == c"SSLKEYLOGFILE";
    if is_log { SECRETS.as_ptr() } else { null() }
}

/// `cookie_io_functions_t`.
#[repr(C)]
struct Cookie {
    read: Option<unsafe extern "C" fn()>,
    write: unsafe extern "C" fn(Any, *const u8, usize) -> isize,
    seek: Option<unsafe extern "C" fn()>,
    close: Option<unsafe extern "C" fn()>,
}

unsafe extern "C" fn write(_cookie: Any, data: *const u8, length: usize) -> isize {
    // SAFETY: the C library gives `length` bytes.
    let data = unsafe { std::slice::from_raw_parts(data, length) };
    // It never fails.
    let _ = host::KeyLogFile.write_all(data);
    length as isize
}

/// `fopen`: the file of secrets is the host's.
#[unsafe(export_name = "__wrap_fopen")]
unsafe extern "C" fn open(path: *const c_char, mode: *const c_char) -> Any {
    // SAFETY: the arguments are those of the caller.
    unsafe {
        if CStr::from_ptr(path) != SECRETS {
            return real_fopen(path, mode);
        }
        fopencookie(null_mut(), mode, Cookie { read: None, write, seek: None, close: None })
    }
}
