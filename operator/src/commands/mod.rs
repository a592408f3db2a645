//! The commands of the binary. Exit codes: 0 well, 1 failed or found something, 2 bad usage.

mod crds;
mod demo_server;
mod dev;
mod dev_companions;
mod dev_files;
mod logging;
mod migrate;
mod operator;
mod rbac;
pub mod receiver;
mod receiver_command;
pub mod validate;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

use logging::LogFormat;

/// Keeps MCP resources provably fresh.
#[derive(Parser)]
#[command(name = "fencepost", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Flags of every command.
#[derive(Args)]
struct Common {
    /// How log lines are written to stderr. `RUST_LOG` filters them, as in `RUST_LOG=fencepost=debug`.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, global = true)]
    log_format: LogFormat,
}

#[derive(Subcommand)]
enum Command {
    /// Run the manifests of a Kubernetes cluster.
    Operator(Box<operator::OperatorArgs>),
    /// Run the manifests of files and folders, watched for edits; no cluster.
    Dev(dev::DevArgs),
    /// Check manifests offline and print the read load that they will cause.
    Validate {
        /// Files or folders of `.yaml`, `.yml` and `.json` manifests.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Print the custom resource definitions as YAML.
    Crds,
    /// Print the roles that the operator needs as YAML.
    Rbac(rbac::RbacArgs),
    /// Bring a database to this version's schema.
    Migrate(migrate::MigrateArgs),
    /// Serve a folder as MCP resources, in both eras.
    DemoServer(demo_server::DemoServerArgs),
    /// Receive webhooks, verify them and print what they tell.
    Receiver(receiver_command::ReceiverArgs),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    logging::init(cli.common.log_format);
    match cli.command {
        Command::Validate { paths } => validate::run(&paths),
        Command::Crds => crds::run(),
        Command::Rbac(args) => rbac::run(&args),
        Command::Operator(args) => block_on(operator::run(*args)),
        Command::Dev(args) => block_on(dev::run(args)),
        Command::Migrate(args) => block_on(migrate::run(args)),
        Command::DemoServer(args) => block_on(demo_server::run(args)),
        Command::Receiver(args) => block_on(receiver_command::run(args)),
    }
}

/// Of each worker: rendering a page descends through its whole tree, in a debug build with frames of
/// many KiB. Address space only; what is not touched is not memory.
const STACK: usize = 16 * 1024 * 1024;

/// Runs an asynchronous command; its error is one sentence on stderr.
fn block_on<E: std::error::Error + 'static>(
    command: impl Future<Output = Result<(), E>>,
) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK)
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the runtime could not be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", crate::sentence::chain(&error));
            ExitCode::FAILURE
        }
    }
}
