registry_core::discover!(folder);

fn main() {}
