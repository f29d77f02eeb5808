//! Errors of a wrong `#[tool]`; see `ui/README.md`.

#[test]
fn b12_a_fault_is_reported_on_its_token() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
