//! B1: ordinary text is not read as calls, even where tools have the names it is full of.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use crate::{
    cases::skipped,
    common::{Dice, Seen, rebuilt, scan},
};
use serde_json::json;
use toolrack_dialects::{Offered, OfferedTool, ScanOptions, dialects};

/// Names that are everywhere in documentation and code.
const NAMES: [&str; 4] = ["search", "get", "print", "run"];

const PIECE: usize = 4096;
/// Of a longer file only the beginning is read.
const LONGEST: usize = 64 << 10;

fn tools() -> Arc<Offered> {
    let schema = Arc::new(json!({"type": "object", "properties": {
        "query": {"type": "string"}, "key": {"type": "string"}, "text": {"type": "string"},
        "command": {"type": "string"}, "limit": {"type": "integer"}}}));
    Arc::new(Offered::new(NAMES.map(|name| OfferedTool::new(name).schema(Arc::clone(&schema)))))
}

/// Whether a text holds a delimiter of thinking, or a line that begins with a model's own token.
fn has_thinking(text: &str) -> bool {
    let mut thinking = dialects().flat_map(|row| row.thinking);
    thinking.any(|(open, close)| text.contains(open) || text.contains(close))
        || text.lines().any(|line| ["<|", "<｜"].iter().any(|token| line.trim_start().starts_with(token)))
}

/// What is wrong with the readings of a text, whole and in pieces: that there is a call in it, or that a byte of it is
/// anything but text.
fn fault(text: &str, offered: &Arc<Offered>) -> Option<String> {
    let cuts: Vec<usize> =
        (PIECE..text.len()).step_by(PIECE).map(|cut| text.floor_char_boundary(cut)).collect();
    for (cuts, deltas) in [(&[][..], false), (&cuts[..], true)] {
        let seen = scan(text, cuts, offered, &ScanOptions::default().deltas(deltas));
        let mut content = String::new();
        for event in &seen {
            match event {
                Seen::Call(call) => return Some(format!("{:?} is read as {:?}", call.source, call.dialect)),
                Seen::Text(text) => content.push_str(text),
                _ => {}
            }
        }
        if rebuilt(&seen) != text {
            return Some("other bytes came out than went in".into());
        }
        if content != text && !has_thinking(text) {
            return Some("not all of it is text".into());
        }
    }
    None
}

/// A kind of file, where it is found, and how many bytes of it are read.
struct Kind {
    endings: &'static [&'static str],
    folders: Vec<PathBuf>,
    most: usize,
}

/// The sources of the crates this workspace is built with, as far as Cargo has unpacked them. Other crates may hold
/// what a model writes.
fn crates() -> Vec<PathBuf> {
    let lock = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
    let value = |line: &str, key: &str| Some(line.strip_prefix(key)?.strip_suffix('"')?.to_owned());
    let mut names: Vec<String> = lock
        .split("[[package]]")
        .filter(|package| package.contains("source = "))
        .filter_map(|package| {
            let find = |key| package.lines().find_map(|line| value(line, key));
            Some(format!("{}-{}", find("name = \"")?, find("version = \"")?))
        })
        .collect();
    names.sort();
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo"))).unwrap_or_default();
    let mut registries: Vec<PathBuf> =
        fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten().map(|it| it.path()).collect();
    registries.sort();
    registries.iter().flat_map(|registry| names.iter().map(|name| registry.join(name))).collect()
}

/// The files below a folder that have one of the endings, in the order of their names, until they are enough.
fn files(folder: &Path, kind: &Kind, found: &mut Vec<(PathBuf, String)>, bytes: &mut usize) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if *bytes >= kind.most {
            return;
        }
        if path.is_dir() && !path.is_symlink() {
            files(&path, kind, found, bytes);
        } else if path.extension().is_some_and(|ending| kind.endings.iter().any(|one| ending == *one))
            && let Ok(mut text) = fs::read_to_string(&path)
        {
            text.truncate(text.floor_char_boundary(LONGEST.min(kind.most - *bytes)));
            *bytes += text.len();
            found.push((path, text));
        }
    }
}

/// What a program prints, without the white space around it.
fn printed(program: &str, arguments: &[&str]) -> Option<PathBuf> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim())).filter(|path| path.is_dir())
}

#[test]
fn b1_no_call_in_documentation_and_code() {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let pages = printed(&rustc, &["--print", "sysroot"]).map(|root| root.join("share/doc/rust/html"));
    let python = printed("python3", &["-c", "import sysconfig; print(sysconfig.get_paths()['stdlib'])"]);
    let crates = crates();
    let kind = |endings, folders: &mut dyn Iterator<Item = &PathBuf>, megabytes: usize| Kind {
        endings,
        folders: folders.filter(|folder| folder.is_dir()).cloned().collect(),
        most: megabytes << 20,
    };
    let kinds = [
        ("pages", kind(&["html"], &mut pages.iter(), 4)),
        ("Rust", kind(&["rs"], &mut crates.iter(), 4)),
        ("Markdown", kind(&["md"], &mut crates.iter(), 3)),
        ("JSON", kind(&["json", "jsonl"], &mut crates.iter(), 2)),
        ("settings", kind(&["toml", "yml", "yaml", "txt"], &mut crates.iter(), 1)),
        ("C and shell", kind(&["c", "h", "cpp", "sh", "js", "css"], &mut crates.iter(), 2)),
        ("Python", kind(&["py"], &mut python.iter(), 4)),
    ];
    let offered = tools();
    let (mut read, mut thinking, mut faults) = (0, 0, Vec::new());
    for (name, kind) in &kinds {
        if kind.folders.is_empty() {
            skipped(&format!("there is no folder with {name}"));
            continue;
        }
        let (mut found, mut bytes) = (Vec::new(), 0);
        kind.folders.iter().for_each(|folder| files(folder, kind, &mut found, &mut bytes));
        println!("{name}: {} files, {bytes} bytes", found.len());
        for (path, text) in &found {
            faults.extend(fault(text, &offered).map(|fault| format!("{}: {fault}", path.display())));
            thinking += usize::from(has_thinking(text));
            read += 1;
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(thinking * 100 <= read, "{thinking} of {read} files hold delimiters of thinking");
}

/// Texts that come near to calls and are none, whatever tool NAME is.
const NEAR: &[&str] = &[
    // Statements of a program.
    "NAME(\"hello\")",
    "NAME(x)\nNAME(x, y)\nresult = NAME(x)",
    "NAME(query=\"tides\", limit=3)",
    "NAME(\"hello\", end=\"\")\nif NAME():\n    NAME(*args, **options)\n",
    "[NAME(1), NAME(2)]",
    "[NAME(x) for x in rows]\n[NAME]\n[NAME, NAME]\n[NAME()[0]]\n",
    "values = [NAME(1), NAME(2)]\n[values.NAME(0)]\n[NAME(1)[0]]\n",
    "def NAME(query: str, limit=3) -> list[str]:\n    return [NAME(query)[:limit]]\n",
    "class NAME(dict):\n    def __getitem__(self, key):\n        return self[NAME(key)]\n",
    "fn NAME<T>(values: &[T]) -> Vec<T> { values.iter().map(|value| NAME(value)).collect() }",
    "#[NAME]\nfn f() -> Vec<function::Of<T>> { a[NAME(i)] < b && c > d }",
    "std::function<void()> NAME;\ntemplate <typename function> NAME<function>(NAME);\n",
    "const {NAME} = require('NAME');\nNAME({name: 'NAME', arguments: [1, 2]});\n",
    "NAME = lambda key: {\"name\": key}[\"name\"]",
    "$ NAME --all < in.txt > out.txt 2>&1\n$ NAME [OPTIONS] <FILE>\n$ cat <<EOF | NAME\n<name>\nEOF\n",
    "SELECT name, arguments FROM calls WHERE name = 'NAME' AND \"arguments\" <> '{}';",
    "a{NAME}b ${NAME} {{NAME}} {% NAME %} <%= NAME %> [[NAME]] {NAME} (NAME)",
    "{NAME(1)}\n{NAME: 1}\n{\"NAME\"}\n{NAME}\n",
    // Data.
    "{\n  \"name\": \"NAME\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\"NAME\": \"node NAME.js\"}\n}",
    "{\"name\": \"NAME\", \"description\": \"d\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}",
    "{\"name\": \"NAME\", \"arguments\": 5}\n{\"name\": \"NAME\", \"arguments\": [\"--all\"]}\n",
    "{\"name\": \"NAME\", \"arguments\": \"--all\"}",
    "{\"name\": [\"NAME\"], \"arguments\": {}}\n{\"name\": {\"NAME\": 1}}\n{\"arguments\": {\"query\": \"x\"}}\n",
    "{\"name\": \"NAME\", \"arguments\": {}, \"status\": \"done\", \"duration_ms\": 12}",
    "[{\"name\": \"NAME\", \"size\": 3}, {\"name\": \"NAME\", \"size\": 4}]",
    "[{\"name\": \"NAME\", \"arguments\": {}}, {\"name\": \"NAME\", \"size\": 4}]",
    "{\"level\": \"info\", \"name\": \"NAME\", \"msg\": \"done\"}\n{\"level\": \"warn\", \"name\": \"NAME\"}\n",
    "{\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"NAME\", \"strict\": true}}]}",
    "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"NAME\", \"params\": {\"name\": \"NAME\"}}",
    "name: NAME\narguments:\n  - --all\n  - {name: NAME}\non: [push, NAME]\n",
    "[NAME]\nname = \"NAME\"\narguments = [\"--all\"]\n[[NAME]]\n[NAME.arguments]\nquery = {}\n",
    "name,arguments\nNAME,{}\n\"NAME\",\"{\"\"query\"\": 1}\"\n",
    "[INFO] NAME: ok\n[WARN] [NAME] {\"took\": 3}\n[2024-05-01 10:00:00] GET /NAME 200 [NAME]\nNAME: done\n",
    // Prose.
    "See [NAME](https://example.org/NAME) [1] and [NAME][2].\n\n[1]: https://example.org/NAME\n[^1]: NAME\n",
    "- [ ] NAME the logs\n- [x] NAME()\n1. NAME(x)\n2) `NAME(x)`\n* NAME: {\"query\": \"x\"}\n",
    "| name | arguments |\n|---|---|\n| NAME | {\"query\": \"x\"} |\n| [NAME](x) | `[NAME(query=\"x\")]` |\n",
    "User: please NAME it\nAssistant: I will call NAME with {\"query\": \"x\"}.\nTool NAME: []\nAssistant: Done.\n",
    "Action: none\nThought: I should NAME\nFinal Answer: NAME(x)\n",
    "The model writes {\"name\": \"NAME\", \"arguments\": {\"query\": \"x\"}} and waits.",
    "To call it, write [NAME(query=\"x\")] on a line of its own.",
    "The <tool_call> tag opens a call of NAME, and </tool_call> closes it; [TOOL_CALLS] does elsewhere.",
    "Write `<tool_call>{\"name\": \"NAME\", \"arguments\": {}}</tool_call>` or `[NAME(key=\"a\")]`.",
    "It is \"<tool_call>{\"name\": \"NAME\", \"arguments\": {}}</tool_call>\" in the log.",
    "Write `<function=NAME><parameter=query>x</parameter></function>`, not `<function>NAME</function>`.",
    "<p>The <function> and <parameter> tags, <invoke>, <arg_key>, <tool> and <NAME> are elements.</p>",
    "<ul>\n<li><NAME>1</NAME></li>\n<function>NAME</function>\n<parameter>x</parameter>\n</ul>",
    "<tool_call>to NAME or not</tool_call>\n<tool_call>\n</tool_call>\n<tool_call/>\n<function=NAME> begins it\n",
    "<param name=\"query\" value=\"x\"/>\n<input name=\"NAME\">\n<button onclick=\"NAME('x')\">NAME</button>",
    "Then it printed ```NAME``` and `` `NAME` `` and stopped.",
    // Fences that show something.
    "So:\n```python\nNAME(\"hello\")\nprint(NAME(1))\n```\n",
    "So:\n```python\n[NAME(key=\"a\"), NAME(query=\"b\")]\n```\n",
    "```python\n[NAME(key=\"a\"), NAME(query=\"b\")]\n```\n",
    "```\n[NAME(key=\"a\")]\n```\n",
    "So:\n```xml\n<tool_call>{\"name\": \"NAME\", \"arguments\": {}}</tool_call>\n```\nis a call.\n",
    "So:\n```json\n{\"name\": \"NAME\", \"arguments\": {}} // and so on\n```\n",
    "So:\n```js\n{\"name\": \"NAME\", \"arguments\": {}}\n```\n",
    "So:\n```json\n{\"name\": \"NAME\", \"version\": \"1\", \"arguments\": {}}\n```\n",
    "So:\n~~~sh\nNAME --all\n~~~\n",
];

#[test]
fn b1_no_call_in_what_comes_near_to_one() {
    let offered = tools();
    let mut faults = Vec::new();
    for (near, name) in NEAR.iter().flat_map(|near| NAMES.map(|name| (near, name))) {
        let text = near.replace("NAME", name);
        for text in [text.clone(), format!("{text}\n"), format!("\n\n{text}\r\n"), format!("So:\n{text}\n.")]
        {
            faults.extend(fault(&text, &offered).map(|fault| format!("{text:?}: {fault}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn b1_no_call_in_long_texts_made_of_such() {
    let offered = tools();
    let mut dice = Dice(0x0ca1_1000);
    let mut bytes = 0;
    let mut faults = Vec::new();
    while bytes < 2 << 20 {
        let mut text = String::from("This is how it goes.\n");
        while text.len() < 16 << 10 {
            let near = NEAR[dice.roll(NEAR.len())];
            text.push_str(&near.replace("NAME", NAMES[dice.roll(NAMES.len())]));
            text.push_str(["\n", "\n\n", "\r\n", "\n\nAnd so on.\n"][dice.roll(4)]);
        }
        faults.extend(fault(&text, &offered));
        bytes += text.len();
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn b1_a_call_in_such_a_text_would_be_seen() {
    let text = format!("{}\n{{\"name\": \"get\", \"arguments\": {{\"key\": \"a\"}}}}\n", NEAR[0]);
    assert!(fault(&text, &tools()).unwrap().ends_with("is read as \"bare_json\""));
    assert!(fault("a <think> b </think>\n<think>c</think>", &tools()).is_none());
    assert!(fault("</tool_call> b", &tools()).is_none());
}
