///
/// # Parameters
///
/// - `times`: How often.
async fn hello(name: String, times: u8) -> String {
    name.repeat(times.into())
}
#[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated, dead_code)]
const _: () = {
    use ::registry_core::__private;
    const __of_name: __private::Parameter<String> = __private::parameter::<
        String,
    >("name", "");
    const __of_times: __private::Parameter<u8> = __private::parameter::<
        u8,
    >("times", "How often.");
    const __RETURNS: __private::Returns<String> = __private::returns::<String>();
    const __PLUGIN: __private::Plugin = {
        let mut __plugin = __private::unregistered();
        __plugin = __plugin.gate(true);
        __plugin
    };
};
::core::compile_error! {
    "tool `hello`: the argument `name` has no doc comment\nhelp: say in `/// …` above it what the model is to give"
}
::core::compile_error! {
    "tool `hello`: it has no description\nhelp: say in `/// …` above it what it does and when to use it; a model chooses by that"
}
::core::compile_error! {
    "tool `hello`: `gate` is given twice\nhelp: leave one of them"
}
