/// Joins words.
///
/// # Parameters
///
/// - `between`: What stands between.
/// - `list`: The words.
/// - `before`: What stands before.
/// - `how`: How.
async fn join(
    between: &str,
    words: &[String],
    before: Option<&str>,
    how: &How,
) -> String {
    words.join(between)
}
#[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated)]
const _: () = {
    use ::registry_core::__private;
    const __of_between: __private::Parameter<::std::string::String> = __private::parameter::<
        ::std::string::String,
    >("between", "What stands between.")
        .default(|| <::std::string::String as ::core::convert::From<&str>>::from(", "))
        .bounds(|| ::std::vec::Vec::from([
            __private::length::<
                ::std::string::String,
            >(::core::option::Option::None, ::core::option::Option::Some(3), false),
            __private::pattern::<::std::string::String>("^[ ,;]*$"),
        ]));
    const __of_words: __private::Parameter<::std::vec::Vec<String>> = __private::parameter::<
        ::std::vec::Vec<String>,
    >("list", "The words.")
        .examples(|| __private::example::<
            ::std::vec::Vec<String>,
        >(
            ::std::vec::Vec::from([
                <String as ::core::convert::From<&str>>::from("a"),
                <String as ::core::convert::From<&str>>::from("b"),
            ]),
        ));
    const __of_before: __private::Parameter<
        ::core::option::Option<::std::string::String>,
    > = __private::optional::<::std::string::String>("before", "What stands before.");
    const __of_how: __private::Parameter<How> = __private::parameter::<
        How,
    >("how", "How.");
    const __RETURNS: __private::Returns<String> = __private::returns::<String>();
    fn __run<'__a>(
        _: &'__a __private::ToolContext,
        __given: __private::Map<::std::string::String, __private::Value>,
    ) -> __private::BoxFuture<
        '__a,
        ::core::result::Result<__private::ToolResult, __private::ToolError>,
    > {
        ::std::boxed::Box::pin(async move {
            let (
                __value_between,
                (__value_words, (__value_before, (__value_how, ()))),
            ) = __private::take(
                (&__of_between, (&__of_words, (&__of_before, (&__of_how, ())))),
                __given,
            )?;
            __RETURNS
                .give(
                    join(
                            &__value_between,
                            &__value_words,
                            __value_before.as_deref(),
                            &__value_how,
                        )
                        .await,
                )
        })
    }
    const __PLUGIN: __private::Plugin = {
        let mut __plugin = __private::Plugin::new(
            "join",
            "Joins words.",
            || __private::of_parameters(
                &[&__of_between, &__of_words, &__of_before, &__of_how],
            ),
            || __RETURNS.schema(),
            __run,
            __private::Place {
                module_path: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        );
        __plugin
    };
    __private::inventory::submit!(__PLUGIN);
};
