/// Gives memory back after a crowd has left, which the system's allocator does not, and is faster under threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    unionhall::cli::main()
}
