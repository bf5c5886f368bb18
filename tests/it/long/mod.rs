//! What takes too long for every run: `./test.sh --long` has it too.

mod once;
mod timing;
