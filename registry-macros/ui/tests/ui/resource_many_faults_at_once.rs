use registry_core::prelude::*;

#[args]
struct One {
    /// A key.
    key: u8,
}

#[resource(table = "one", table = "two", needs)]
fn many<T>(one: Settings<One>, two: Settings<One>, three: u8) -> Resource<T> {
    let _ = (one.key, two.key, three);
    todo!()
}

#[resource]
struct NotAFunction;

fn main() {}
