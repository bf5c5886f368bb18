fn main() -> std::process::ExitCode {
    unionhall::cli::main()
}
