use registry_core::prelude::*;

struct Client(std::cell::Cell<u8>);

#[resource]
fn client() -> Client {
    Client(std::cell::Cell::new(1))
}

fn main() {}
