//! QUIC stacks of shared libraries.

mod context;
mod end;

use std::ffi::{CStr, c_char};
use std::fmt;
use std::sync::Arc;

use gargalo_plugin::stack::abi::{self, feature};
use gargalo_quic::foreign::{About, Foreign, Request};
use gargalo_quic::{Config, Error, Features, Implementation, Init, Realm, Stack, Uses};

use crate::calls::Callee;
use crate::fault::Faults;
use crate::library::{Library, LoadError, Read};
use end::End;

/// Most congestion controls that a library may list.
const MOST_NAMES: usize = 256;

/// The functions of a stack, as [`Callee`] numbers them.
mod function {
    pub(super) const CREATE: usize = 0;
    pub(super) const DESTROY: usize = 1;
    pub(super) const DATAGRAM_IN: usize = 2;
    pub(super) const DATAGRAM_OUT: usize = 3;
    pub(super) const NEXT_TIMER: usize = 4;
    pub(super) const TIMEOUT: usize = 5;
    pub(super) const OPEN_STREAM: usize = 6;
    pub(super) const WRITE: usize = 7;
    pub(super) const UNACKNOWLEDGED: usize = 8;
    pub(super) const MIGRATE: usize = 9;
    pub(super) const CLOSE: usize = 10;
    pub(super) const IS_OVER: usize = 11;
    pub(super) const STATS: usize = 12;
    pub(super) const OPEN_UNIDIRECTIONAL_STREAM: usize = 13;
    pub(super) const SEND_DATAGRAM: usize = 14;
    pub(super) const RESET_STREAM: usize = 15;
    pub(super) const STOP_SENDING: usize = 16;
    pub(super) const SET_URGENCY: usize = 17;
    pub(super) const UPDATE_KEYS: usize = 18;
    pub(super) const OPEN_PATH: usize = 19;
    pub(super) const PATHS: usize = 20;
    pub(super) const PACKET_TOO_BIG: usize = 21;
    pub(super) const NAMES: [&str; 22] = [
        "create",
        "destroy",
        "datagram_in",
        "datagram_out",
        "next_timer",
        "timeout",
        "open_stream",
        "write",
        "unacknowledged",
        "migrate",
        "close",
        "is_over",
        "stats",
        "open_unidirectional_stream",
        "send_datagram",
        "reset_stream",
        "stop_sending",
        "set_urgency",
        "update_keys",
        "open_path",
        "paths",
        "packet_too_big",
    ];
}

/// The QUIC stack of a library.
pub struct NativeStack {
    library: &'static Library,
    functions: Functions,
    callee: &'static Callee,
    version: String,
    congestion: Vec<String>,
    specifications: Vec<String>,
    features: Features,
}

/// The functions of a table; those that a library may leave out are optional.
#[derive(Clone, Copy)]
struct Functions {
    create: unsafe extern "C" fn(
        *const abi::Config,
        *const abi::Host,
        u64,
        *mut c_char,
        usize,
    ) -> *mut std::ffi::c_void,
    destroy: unsafe extern "C" fn(*mut std::ffi::c_void),
    datagram_in: unsafe extern "C" fn(*mut std::ffi::c_void, u64, *const abi::Path, *mut u8, usize),
    datagram_out:
        unsafe extern "C" fn(*mut std::ffi::c_void, u64, *mut abi::Path, *mut u8, usize) -> usize,
    next_timer: unsafe extern "C" fn(*mut std::ffi::c_void) -> u64,
    timeout: unsafe extern "C" fn(*mut std::ffi::c_void, u64),
    open_stream: unsafe extern "C" fn(*mut std::ffi::c_void, u64) -> i64,
    write: unsafe extern "C" fn(
        *mut std::ffi::c_void,
        u64,
        u64,
        *const u8,
        usize,
        std::ffi::c_int,
    ) -> usize,
    unacknowledged: Option<unsafe extern "C" fn(*mut std::ffi::c_void) -> u64>,
    migrate: Option<unsafe extern "C" fn(*mut std::ffi::c_void, u64, *const abi::Address)>,
    close: unsafe extern "C" fn(*mut std::ffi::c_void, u64),
    is_over: unsafe extern "C" fn(*mut std::ffi::c_void) -> std::ffi::c_int,
    stats: unsafe extern "C" fn(*mut std::ffi::c_void, *mut abi::Stats),
    open_unidirectional_stream: Option<unsafe extern "C" fn(*mut std::ffi::c_void, u64) -> i64>,
    send_datagram: Option<
        unsafe extern "C" fn(*mut std::ffi::c_void, u64, *const u8, usize) -> std::ffi::c_int,
    >,
    reset_stream: Option<unsafe extern "C" fn(*mut std::ffi::c_void, u64, u64)>,
    stop_sending: Option<unsafe extern "C" fn(*mut std::ffi::c_void, u64, u64)>,
    set_urgency: Option<unsafe extern "C" fn(*mut std::ffi::c_void, u64, u64, u8)>,
    update_keys: Option<unsafe extern "C" fn(*mut std::ffi::c_void, u64) -> std::ffi::c_int>,
    open_path: Option<unsafe extern "C" fn(*mut std::ffi::c_void, u64, *const abi::Path)>,
    paths: Option<unsafe extern "C" fn(*mut std::ffi::c_void, *mut abi::StackPath, usize) -> usize>,
    packet_too_big: Option<unsafe extern "C" fn(*mut std::ffi::c_void, u64, *const abi::Path, u64)>,
}

impl Functions {
    fn of(t: &abi::Table) -> Option<Self> {
        Some(Self {
            create: t.create?,
            destroy: t.destroy?,
            datagram_in: t.datagram_in?,
            datagram_out: t.datagram_out?,
            next_timer: t.next_timer?,
            timeout: t.timeout?,
            open_stream: t.open_stream?,
            write: t.write?,
            unacknowledged: t.unacknowledged,
            migrate: t.migrate,
            close: t.close?,
            is_over: t.is_over?,
            stats: t.stats?,
            open_unidirectional_stream: t.open_unidirectional_stream,
            send_datagram: t.send_datagram,
            reset_stream: t.reset_stream,
            stop_sending: t.stop_sending,
            set_urgency: t.set_urgency,
            update_keys: t.update_keys,
            open_path: t.open_path,
            paths: t.paths,
            packet_too_big: t.packet_too_big,
        })
    }
}

impl NativeStack {
    /// The stack of a library; `None`: it exports none.
    ///
    /// # Errors
    /// When it was made for another version of the interface, or its table is not valid.
    pub fn of(library: &'static Library) -> Result<Option<&'static Self>, LoadError> {
        static STACKS: Read<Option<&'static NativeStack>> = Read::new();
        STACKS.of(library, || {
            Ok(Self::read(library)?.map(|stack| &*Box::leak(Box::new(stack))))
        })
    }

    fn read(library: &'static Library) -> Result<Option<Self>, LoadError> {
        // SAFETY: the header declares the function of this name so.
        let entry = match unsafe { library.function::<abi::Entry>(abi::SYMBOL) } {
            Ok(entry) => entry,
            Err(LoadError::NoSymbol { .. }) => return Ok(None),
            Err(e) => return Err(e),
        };
        let file = || library.file().to_owned();
        let invalid = |what: &str| LoadError::Invalid {
            file: file(),
            what: what.to_owned(),
        };
        // SAFETY: the function takes nothing; the table that it returns lives as long as the library.
        let table = unsafe { entry() };
        if table.is_null() || !table.is_aligned() {
            return Err(invalid("gargalo_stack_v1 returned no table"));
        }
        // SAFETY: every version of the table begins with its version.
        let found = unsafe { (*table).abi };
        if found != abi::ABI {
            return Err(LoadError::Version {
                file: file(),
                found,
                wanted: abi::ABI,
            });
        }
        // SAFETY: tables of this version have a size.
        let size = unsafe { (*table).size };
        let Some(size) = usize::try_from(size)
            .ok()
            .filter(|s| *s >= abi::LEAST_TABLE)
        else {
            return Err(LoadError::Sizes {
                file: file(),
                header: "stack",
            });
        };
        // SAFETY: version and size are right, so it is a table, or the beginning of one.
        let table = &unsafe { whole(table, size) };
        let functions = Functions::of(table).ok_or_else(|| {
            invalid("the table of the stack lacks a function that every stack has")
        })?;
        let name = text(table.name).ok_or_else(|| invalid("the stack has no name"))?;
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name == gargalo_quic::NOQ || !name.chars().all(fits) {
            let what = format!("\"{name}\" cannot be the name of a stack");
            return Err(invalid(&what));
        }
        let congestion = texts(table.congestion);
        if congestion.is_empty() {
            return Err(invalid("the stack lists no congestion control"));
        }
        let specifications = texts(table.specifications);
        if !table.specifications.is_null() && specifications.len() != congestion.len() {
            return Err(invalid(
                "the stack has another number of specifications than of congestion controls",
            ));
        }
        let has = |bit: u32| table.features & bit != 0;
        let f = &functions;
        let needed = [
            (feature::MIGRATION, f.migrate.is_some(), "migrate"),
            (
                feature::UNIDIRECTIONAL,
                f.open_unidirectional_stream.is_some(),
                "open_unidirectional_stream",
            ),
            (
                feature::DATAGRAMS,
                f.send_datagram.is_some(),
                "send_datagram",
            ),
            (
                feature::CANCEL,
                f.reset_stream.is_some() && f.stop_sending.is_some(),
                "reset_stream or stop_sending",
            ),
            (feature::URGENCY, f.set_urgency.is_some(), "set_urgency"),
            (feature::KEY_UPDATE, f.update_keys.is_some(), "update_keys"),
            (
                feature::MULTIPATH,
                f.open_path.is_some() && f.paths.is_some(),
                "open_path or paths",
            ),
        ];
        if let Some((.., name)) = needed.iter().find(|(bit, there, _)| has(*bit) && !there) {
            return Err(invalid(&format!(
                "the stack has a feature without its function, {name}"
            )));
        }
        if let Some(prepare) = table.prepare {
            // SAFETY: the function takes nothing; this is the first call after that of the table.
            unsafe { prepare() };
        }
        Ok(Some(Self {
            library,
            functions,
            callee: Callee::new(library.file(), name.leak(), &function::NAMES),
            version: text(table.version).unwrap_or_default(),
            congestion,
            specifications,
            features: Features {
                zero_rtt: has(feature::ZERO_RTT),
                retry: has(feature::RETRY),
                migration: has(feature::MIGRATION),
                ecn: has(feature::ECN),
                no_pacing: has(feature::NO_PACING),
                mtu_discovery: has(feature::MTU_DISCOVERY),
                initial_window: has(feature::INITIAL_WINDOW),
                options: has(feature::OPTIONS),
                local_address: has(feature::LOCAL_ADDRESS),
                unidirectional: has(feature::UNIDIRECTIONAL),
                datagrams: has(feature::DATAGRAMS),
                cancel: has(feature::CANCEL),
                urgency: has(feature::URGENCY),
                key_update: has(feature::KEY_UPDATE),
                qlog: has(feature::QLOG),
                packets: has(feature::PACKETS),
                multipath: has(feature::MULTIPATH) && has(feature::LOCAL_ADDRESS),
                ecdsa: has(feature::ECDSA),
            },
        }))
    }

    /// Its name in scenarios.
    pub fn name(&self) -> &'static str {
        self.callee.name
    }

    /// The library that exports the stack.
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// The version of the implementation inside.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Names of its congestion controls, the default first.
    pub fn congestion(&self) -> &[String] {
        &self.congestion
    }

    /// Those of them of which it says what they follow, with that: `bbr`, `bbr2`, `bbr3`.
    pub fn specifications(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = self.congestion.iter().map(String::as_str);
        let follow = self.specifications.iter().map(String::as_str);
        names.zip(follow).filter(|(_, follows)| !follows.is_empty())
    }

    /// What it can do.
    pub fn features(&self) -> Features {
        self.features
    }

    fn about(&self) -> About<'_> {
        About {
            name: self.name(),
            congestion: &self.congestion,
            features: self.features,
        }
    }
}

/// The table of a library; what is beyond its size is null.
///
/// # Safety
/// `table` must have `size` bytes, which must be those of a table or of its beginning.
unsafe fn whole(table: *const abi::Table, size: usize) -> abi::Table {
    let mut whole = std::mem::MaybeUninit::<abi::Table>::zeroed();
    let size = size.min(size_of::<abi::Table>());
    // SAFETY: the caller answers for the bytes; zeros are null pointers, missing functions and numbers.
    unsafe {
        std::ptr::copy_nonoverlapping(table.cast::<u8>(), whole.as_mut_ptr().cast::<u8>(), size);
        whole.assume_init()
    }
}

/// The strings of a list that ends with a null pointer; none for no list.
fn texts(list: *const *const c_char) -> Vec<String> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: the list ends with a null pointer; the limit holds where it does not.
    let all = (0..MOST_NAMES).map(|i| text(unsafe { *list.add(i) }));
    all.map_while(|t| t).collect()
}

/// A string of a library; `None` for a null pointer.
fn text(at: *const c_char) -> Option<String> {
    // SAFETY: strings of libraries end with 0, by the interface.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}

impl fmt::Debug for NativeStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeStack")
            .field("name", &self.name())
            .field("version", &self.version)
            .field("library", &self.library)
            .finish_non_exhaustive()
    }
}

/// The stack of a library in one run.
#[derive(Debug)]
pub struct NativeImplementation {
    of: &'static NativeStack,
    faults: Arc<Faults>,
}

impl NativeImplementation {
    /// `faults` records calls that do not return.
    pub fn new(of: &'static NativeStack, faults: Arc<Faults>) -> Self {
        Self { of, faults }
    }
}

impl Implementation for NativeImplementation {
    fn name(&self) -> &str {
        self.of.name()
    }

    fn needs_ecdsa(&self) -> bool {
        self.of.features.ecdsa
    }

    fn check(&self, config: &Config, uses: Uses, is_client: bool) -> Result<(), Error> {
        let of = self.of;
        of.features
            .check(of.name(), &of.congestion, config, uses, is_client)
    }

    fn end(
        &self,
        realm: &Realm,
        config: &Config,
        init: Init,
        is_client: bool,
    ) -> Result<Box<dyn Stack>, Error> {
        let about = self.of.about();
        let (request, pending) = Request::of(about, realm, config, init, is_client);
        let end = End::new(self.of, &self.faults, &request, pending)?;
        Ok(Box::new(Foreign::new(end, about, &request)))
    }
}
