#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| unionhall_fuzz::targets::form_with_file(data));
