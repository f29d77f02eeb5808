//! Reads the calls out of what a model wrote, whatever its dialect: `cargo run -p toolrack-dialects --example read_calls < answer.txt`.

use std::io;

use toolrack_dialects::{Offered, ScanOptions, parse};

fn main() -> io::Result<()> {
    let text = io::read_to_string(io::stdin())?;
    let parsed = parse(&text, Offered::any().into(), ScanOptions::default());
    for call in parsed.calls {
        println!("{} {}", call.name, call.arguments);
    }
    println!("{}", parsed.content.trim());
    Ok(())
}
