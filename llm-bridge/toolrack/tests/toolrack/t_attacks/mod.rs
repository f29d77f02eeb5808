//! The attack tables of the tools that touch files and the web: every row is a call as a model makes it, refused with a message that the
//! model gets, and nothing is written or sent. Requirements P6, T8.
//!
//! The tables are `tests/data/path_attacks.txt` and `tests/data/url_attacks.txt`; to add an attack, add its line.

mod paths;
mod urls;

use crate::support::{Answer, Rack, Setup};
use registry_core::{Registry, Resources};
use serde_json::Value;

/// The rows of a table: JSON arrays of which the first says what kind of row it is. Lines that begin with `#` and empty ones are left out.
fn rows(table: &str) -> Vec<(String, Vec<Value>)> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let row: Vec<Value> =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            (row[0].as_str().unwrap().to_owned(), row[1..].to_vec())
        })
        .collect()
}

/// A server with the bundled tools and these resources. Nobody is asked before files are deleted: here the tools themselves have to refuse.
async fn start(resources: Resources) -> Rack {
    let registry = Registry::builder().resources(resources).approve_destructive(false).build().unwrap();
    Setup::bare().with(|setup| setup.registry = registry).start([]).await
}

/// Has the model make a call: whether it went well, and what the model gets.
async fn called(rack: &Rack, tool: &str, arguments: &Value) -> (bool, String) {
    rack.upstream.push(Answer::new().call("c", &tool.replace('.', "_"), arguments));
    rack.upstream.push(Answer::text("Done."));
    let reported = rack.ask(true).await;
    reported.expect_end("Done.");
    let finished = reported.details_of("call_finished");
    assert_eq!(finished.len(), 1, "{tool} {arguments}");
    assert_eq!(finished[0]["name"], tool);
    let asked = rack.upstream.asked();
    let result = asked.last().unwrap().messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    (finished[0]["success"] == true, result)
}
