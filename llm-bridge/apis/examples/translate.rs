//! Translates a request of Anthropic's API into one of OpenAI's: `cargo run -p toolrack-apis --example translate < request.json`.

use std::io;

use toolrack_apis::{Front, Wire, anthropic::AnthropicFront, openai::OpenAiWire};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let body = io::read_to_string(io::stdin())?;
    let (parts, ()) = http::Request::post("/v1/messages").body(())?.into_parts();
    let request = AnthropicFront.decode(&parts, body.as_bytes())?.request;
    let translated = OpenAiWire.request(&request, "");
    println!("{}", String::from_utf8_lossy(translated.http.body()));
    for omission in translated.omissions {
        eprintln!("{omission}");
    }
    Ok(())
}
