//! `toolrack mcp`: an MCP server over standard input and output.

use std::{io, process::ExitCode, time::Duration};

use registry_core::{Caller, Registry};
use rmcp::{ServiceExt, service::ServerInitializeError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{caller::CallerArguments, serve};
use crate::mcp::{McpServer, McpSettings, UniqueIds, Visitor};

/// How long cancelled calls may take to be audited.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) caller: CallerArguments,
}

/// What the client speaks to.
#[cfg(unix)]
pub(super) type Streams = (tokio::fs::File, tokio::fs::File);
#[cfg(not(unix))]
pub(super) type Streams = (tokio::io::Stdin, tokio::io::Stdout);

/// Standard input and output, for the protocol alone: what tools and the programs that they start print goes to standard error from now
/// on, and they read nothing.
#[cfg(unix)]
pub(super) fn streams() -> io::Result<Streams> {
    use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

    let (input, output) = (stdin().try_clone_to_owned()?, stdout().try_clone_to_owned()?);
    dup2_stdin(std::fs::File::open("/dev/null")?)?;
    dup2_stdout(stderr())?;
    let file = |end| tokio::fs::File::from_std(std::fs::File::from(end));
    Ok((file(input), file(output)))
}

/// Standard input and output.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
pub(super) fn streams() -> io::Result<Streams> {
    Ok((tokio::io::stdin(), tokio::io::stdout()))
}

/// Serves standard input and output until the client closes them.
pub(super) async fn run(
    streams: Streams,
    caller: Caller,
    registry: Registry,
    settings: McpSettings,
    answered: impl Future<Output = ()> + Send + 'static,
) -> Result<ExitCode, String> {
    let (closing, calls) = (CancellationToken::new(), TaskTracker::new());
    tokio::spawn(serve::stop_on_signal(closing.clone()));
    let context = registry.context(caller);
    let visitor = Visitor { registry, context, session: None };
    let server =
        McpServer::for_one(closing.clone(), calls.clone(), visitor).with_settings(settings, answered);
    match server.serve_with_ct(UniqueIds::over(streams), closing.clone()).await {
        Ok(running) => drop(running.waiting().await),
        // A client may disconnect before it initializes.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
        Err(fault) => return Err(format!("the client did not follow the protocol: {fault}")),
    }
    closing.cancel();
    calls.close();
    // Tools that block their thread are abandoned.
    if tokio::time::timeout(LAST_WORDS, calls.wait()).await.is_err() {
        tracing::warn!(calls = calls.len(), "calls_left");
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const SPEAKS: &str = "TEST_SPEAKS_THE_PROTOCOL";

    #[test]
    fn b3_what_a_tool_prints_does_not_come_between_the_lines_of_the_protocol() {
        if std::env::var_os(SPEAKS).is_some() {
            return speak();
        }
        // The streams are those of a process, so this test is run in one of its own.
        let name = "cli::mcp::tests::b3_what_a_tool_prints_does_not_come_between_the_lines_of_the_protocol";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(SPEAKS, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"from the client\n").unwrap();
        let output = child.wait_with_output().unwrap();
        let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "{out}{error}");
        assert!(out.contains("to the client: from the client\n"), "{out}");
        for printed in ["printed here", "printed by a program"] {
            assert!(!out.contains(printed) && error.contains(printed), "{out}{error}");
        }
    }

    fn speak() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut input, mut output) = streams().unwrap();
            println!("printed here");
            // It would wait for the client, or take its words.
            let program = Command::new("sh").args(["-c", "cat; echo printed by a program"]).status();
            assert!(program.unwrap().success());
            let mut words = String::new();
            input.read_to_string(&mut words).await.unwrap();
            output.write_all(format!("to the client: {words}").as_bytes()).await.unwrap();
            output.flush().await.unwrap();
        });
    }
}
