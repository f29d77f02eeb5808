//! Where a server's messages are parsed.

use std::{io, sync::LazyLock};

use tokio::runtime::{Builder, Handle, Runtime};

/// How many threads parse the messages of servers. The client library parses where it reads, which takes seconds for a message of many
/// values: so it reads on these and never on the program's own.
const THREADS: usize = 2;

/// The threads of connections to servers outside of the program; the program's own where the system gives none.
pub(super) fn threads() -> Handle {
    static THREADS_OF_SERVERS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
        Builder::new_multi_thread().worker_threads(THREADS).thread_name("mcp-servers").enable_all().build()
    });
    match &*THREADS_OF_SERVERS {
        Ok(runtime) => runtime.handle().clone(),
        Err(cause) => {
            tracing::error!(%cause, "mcp_threads_not_started");
            Handle::current()
        }
    }
}
