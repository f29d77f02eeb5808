/// A note.
#[args]
#[derive(Debug)]
struct Note {
    /// Where it goes.
    #[arg(default = "inbox", pattern = "^[a-z]+$")]
    folder: String,
    /// How much it matters.
    #[arg(rename = "importance", range = 1..4, example = 2)]
    weight: Option<u8>,
    /// What opens it.
    #[arg(secret, length = 4)]
    pin: Option<String>,
}

#[args]
enum Tone {
    Kind,
    Stern,
}

#[output]
struct Written {
    path: String,
}

/// Writes a note.
#[tool]
async fn write_note(#[args] note: Note) -> Written {
    note.write()
}
