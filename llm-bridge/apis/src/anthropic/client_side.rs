//! Tools that the API defines and the client runs: `bash`, `text_editor`, `memory` and `computer`. A model of Anthropic knows their arguments; every
//! other is told them as those of a function, whose calls go back under the same name:
//! <https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview>.

use serde_json::{Map, Value, json};

use crate::json::Object;

/// The versions whose arguments differ from those of the versions before.
const SECOND: u32 = 20_250_124;
const WITHOUT_UNDO: u32 = 20_250_429;
const WITH_INSERT_TEXT: u32 = 20_250_728;

/// The description and the schema of a tool of such a type; `None` for another type.
pub(super) fn defined(kind: &str, tool: &Object<'_>) -> Option<(String, Value)> {
    let (name, date) = kind.rsplit_once('_')?;
    let date: u32 = date.parse().ok().filter(|_| date.len() == 8)?;
    let (description, properties, required): (_, _, &[&str]) = match name {
        "bash" => (BASH.to_owned(), bash(), &[]),
        "text_editor" => (EDITOR.to_owned(), editor(date), &["command", "path"]),
        "memory" => (MEMORY.to_owned(), memory(), &["command"]),
        "computer" => (computer_text(tool), computer(date, tool), &["action"]),
        _ => return None,
    };
    Some((description, json!({"type": "object", "properties": properties, "required": required})))
}

const BASH: &str = "Run a command in a bash shell. The shell stays open: its directory and variables are there for the next command.";
const EDITOR: &str = "View, create and edit text files. `view` shows a file or lists a directory, `create` writes a new file with `file_text`, \
    `str_replace` replaces the one place where `old_str` stands by `new_str`, `insert` puts a text behind a line.";
const MEMORY: &str = "Keep notes in files below `/memories`, which stay for later conversations. View `/memories` before you begin a task, and write down \
    what will be needed again. `view` shows a file or lists a directory, `create` writes a file with `file_text`, `str_replace` replaces `old_str` by \
    `new_str`, `insert` puts `insert_text` behind a line, `delete` removes a file or directory, `rename` moves `old_path` to `new_path`.";

const BOTH: &str = "For `str_replace`: the text in its place; for `insert`: the text";

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn word(description: &str, words: &[&str]) -> Value {
    json!({"type": "string", "enum": words, "description": description})
}

fn numbers(description: &str, count: u8) -> Value {
    json!({
        "type": "array", "items": {"type": "integer"}, "minItems": count, "maxItems": count,
        "description": description,
    })
}

fn bash() -> Value {
    json!({
        "command": text("The command; required unless `restart` is true"),
        "restart": {"type": "boolean", "description": "Start the shell anew"},
    })
}

/// What files are edited with. Earlier versions insert `new_str`.
fn editing(commands: &[&str], inserted: &str) -> Map<String, Value> {
    let properties = [
        ("command", word("What to do", commands)),
        ("path", text("The absolute path of the file or directory")),
        ("file_text", text("For `create`: the file's text")),
        ("old_str", text("For `str_replace`: the text to replace, which stands in the file once")),
        ("new_str", text("For `str_replace`: the text in its place")),
        (
            "insert_line",
            json!({"type": "integer", "description": "For `insert`: the line behind which to insert; 0 is the beginning"}),
        ),
        (inserted, text(if inserted == "new_str" { BOTH } else { "For `insert`: the text" })),
        (
            "view_range",
            numbers("For `view` of a file: the first and the last line to show; -1 is the end", 2),
        ),
    ];
    properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn editor(date: u32) -> Value {
    let mut commands = vec!["view", "create", "str_replace", "insert"];
    commands.extend((date < WITHOUT_UNDO).then_some("undo_edit"));
    editing(&commands, if date < WITH_INSERT_TEXT { "new_str" } else { "insert_text" }).into()
}

fn memory() -> Value {
    let commands = ["view", "create", "str_replace", "insert", "delete", "rename"];
    let mut properties = editing(&commands, "insert_text");
    properties.insert("path".to_owned(), text("The path below `/memories`; for all commands but `rename`"));
    properties.insert("old_path".to_owned(), text("For `rename`: the path"));
    properties.insert("new_path".to_owned(), text("For `rename`: the new path"));
    properties.into()
}

fn computer_text(tool: &Object<'_>) -> String {
    let size = |name| tool.get(name).and_then(|field| field.integer().ok());
    let screen = match (size("display_width_px"), size("display_height_px")) {
        (Some(width), Some(height)) => format!(" The screen has {width} x {height} pixels."),
        _ => String::new(),
    };
    format!(
        "Use a computer with mouse and keyboard, and see its screen.{screen} Take a screenshot before you click, and point at the middle of \
         what you click at."
    )
}

fn computer(date: u32, tool: &Object<'_>) -> Value {
    let mut actions = vec![
        "screenshot",
        "key",
        "type",
        "mouse_move",
        "left_click",
        "left_click_drag",
        "right_click",
        "middle_click",
        "double_click",
        "cursor_position",
    ];
    let mut properties = vec![
        ("coordinate", numbers("Where: pixels from the left and from the top", 2)),
        ("text", text("For `type`: the text; for `key`: the keys, such as `ctrl+s`")),
    ];
    if date >= SECOND {
        actions.extend(["triple_click", "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait"]);
        properties.extend([
            ("start_coordinate", numbers("For `left_click_drag`: where it begins", 2)),
            ("scroll_direction", word("For `scroll`", &["up", "down", "left", "right"])),
            ("scroll_amount", json!({"type": "integer", "description": "For `scroll`: clicks of the wheel"})),
            ("duration", json!({"type": "number", "description": "For `wait` and `hold_key`: seconds"})),
        ]);
    }
    if tool.get("enable_zoom").is_some_and(|zoom| zoom.bool().unwrap_or_default()) {
        actions.push("zoom");
        properties.push(("region", numbers("For `zoom`: left, top, right and bottom of what to see", 4)));
    }
    let action = ("action", word("What to do", &actions));
    let named = std::iter::once(action).chain(properties).map(|(name, schema)| (name.to_owned(), schema));
    Value::Object(named.collect())
}
