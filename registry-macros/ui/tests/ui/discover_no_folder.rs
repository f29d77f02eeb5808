registry_core::discover!("no/such/folder");

fn main() {}
