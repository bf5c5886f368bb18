//! MCP over standard input and output: one message per line, for assistants on the same machine.

use std::io::{BufRead, Write};
use std::net::{IpAddr, Ipv4Addr};

use super::{McpServer, RpcContext, envelope};
use crate::clock::Clock;
use crate::operations::dispatch::CallTrace;

/// A line longer than this is no message.
const LONGEST_LINE: u64 = 1 << 20;

/// Answers messages until the input ends. `authorization` is what an `Authorization` header would have said.
pub async fn serve(
    server: &McpServer,
    clock: Clock,
    authorization: Option<&str>,
    mut input: impl BufRead,
    mut output: impl Write,
) -> std::io::Result<()> {
    let mut line = Vec::new();
    // Who begins says what it is called; one program is at the other end, to the end.
    let mut client = None;
    loop {
        line.clear();
        let read = std::io::Read::take(&mut input, LONGEST_LINE + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        if line.len() as u64 > LONGEST_LINE {
            // What follows would be read as another message; there is no way back to a line's beginning.
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "a message is longer than 1 MiB"));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let context = RpcContext {
            authorization: authorization.map(str::as_bytes),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            now: clock.now(),
            headers: None,
            request_id: None,
            client: client.as_deref(),
        };
        let answer = server.answer(&line, context, &mut CallTrace::default()).await;
        client = client.or_else(|| envelope::client_of_initialize(&line));
        if let Some(body) = answer.body {
            output.write_all(&body)?;
            output.write_all(b"\n")?;
            output.flush()?;
        }
    }
}
