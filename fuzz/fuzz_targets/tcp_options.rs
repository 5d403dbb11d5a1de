//! TCP and MPTCP options: no panic, nothing lost on the way there and back.
#![no_main]

use gargalo_wire::mptcp::MptcpOption;
use gargalo_wire::tcp::Options;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let option = MptcpOption::decode(bytes);
    let mut out = Vec::new();
    option.encode(&mut out);
    assert_eq!(out.len(), option.len() as usize);
    assert_eq!(MptcpOption::decode(&out[2..]), option);

    let bytes = &bytes[..bytes.len().min(40)];
    let options = Options::decode_prefix(bytes);
    if let Ok(strict) = Options::decode(bytes) {
        assert_eq!(strict, options);
    }
    out.clear();
    options.emit(&mut out).expect("decoded options fit");
    assert_eq!(out.len() as u32, options.padded_len());
    assert_eq!(Options::decode(&out).as_ref(), Ok(&options));
});
