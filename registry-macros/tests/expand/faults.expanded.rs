/**
# Parameters

- `times`: How often.*/
async fn hello(name: String, times: u8) -> String {
    name.repeat(times.into())
}
#[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated, dead_code)]
const _: () = {
    use ::registry_core::__private;
    use __private::Otherwise as _;
    static __of_name: __private::Parameter<String> = __private::Parameter::unless_provided(
        <String as __private::FromCall<_>>::PARAMETER
            .named("name", "", __private::Type::<String>::ABSENT),
        "tool `hello`: the argument `name` has no doc comment\nhelp: say in `/// …` above it what the model is to give",
    );
    static __of_times: __private::Parameter<u8> = <u8 as __private::FromCall<
        _,
    >>::PARAMETER
        .named("times", "How often.", __private::Type::<u8>::ABSENT);
    static __RETURNS: __private::Returns<String> = __private::returns::<String, _>();
    const __PLUGIN: __private::Plugin = {
        let mut __plugin = __private::unregistered();
        __plugin.policy.requires_gate = true;
        __plugin
    };
};
::core::compile_error! {
    "tool `hello`: it has no description\nhelp: say in `/// …` above it what it does and when to use it; a model chooses by that"
}
::core::compile_error! {
    "tool `hello`: `gate` is given twice\nhelp: leave one of them"
}
