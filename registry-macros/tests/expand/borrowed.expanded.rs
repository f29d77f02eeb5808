/// Joins words.
/**
# Parameters

- `between`: What stands between.
- `list`: The words.
- `before`: What stands before.
- `how`: How.*/
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
    use __private::Otherwise as _;
    static __of_between: __private::Parameter<<str as __private::Lend>::Held> = <<str as __private::Lend>::Held as __private::FromCall<
        _,
    >>::PARAMETER
        .named(
            "between",
            "What stands between.",
            __private::Type::<<str as __private::Lend>::Held>::ABSENT,
        )
        .default(
            || __private::Type::<
                <str as __private::Lend>::Held,
            >::of(__private::FromText::from_text(", ")),
            <<str as __private::Lend>::Held as __private::Shown>::SHOW,
        )
        .bounds(|| ::std::vec::Vec::from([
            <<str as __private::Lend>::Held as __private::Counted>::length(
                ::core::option::Option::None,
                ::core::option::Option::Some(3),
                false,
            ),
            <<str as __private::Lend>::Held as __private::Text>::pattern("^[ ,;]*$"),
        ]));
    static __of_words: __private::Parameter<<[String] as __private::Lend>::Held> = <<[String] as __private::Lend>::Held as __private::FromCall<
        _,
    >>::PARAMETER
        .named(
            "list",
            "The words.",
            __private::Type::<<[String] as __private::Lend>::Held>::ABSENT,
        )
        .examples(|| ::std::vec::Vec::from([
            (<<[String] as __private::Lend>::Held as __private::Shown>::SHOW)(
                &__private::Type::<
                    <[String] as __private::Lend>::Held,
                >::of(
                    __private::FromList::from_list([
                        __private::FromText::from_text("a"),
                        __private::FromText::from_text("b"),
                    ]),
                ),
            ),
        ]));
    static __of_before: __private::Parameter<Option<<str as __private::Lend>::Held>> = <Option<
        <str as __private::Lend>::Held,
    > as __private::FromCall<_>>::PARAMETER
        .named(
            "before",
            "What stands before.",
            __private::Type::<Option<<str as __private::Lend>::Held>>::ABSENT,
        );
    static __of_how: __private::Parameter<<How as __private::Lend>::Held> = <<How as __private::Lend>::Held as __private::FromCall<
        _,
    >>::PARAMETER
        .named("how", "How.", __private::Type::<<How as __private::Lend>::Held>::ABSENT);
    static __RETURNS: __private::Returns<String> = __private::returns::<String, _>();
    fn __run<'__a>(
        __context: &'__a __private::ToolContext,
        __given: __private::Given,
    ) -> __private::ToolFuture<'__a> {
        __private::boxed(async move {
            let (
                __value_between,
                (__value_words, (__value_before, (__value_how, ()))),
            ) = __private::take(
                (&__of_between, (&__of_words, (&__of_before, (&__of_how, ())))),
                __context,
                __given,
            )?;
            __RETURNS
                .give(
                    join(
                            &__value_between,
                            &__value_words,
                            __private::lent::<str>(&__value_before),
                            &__value_how,
                        )
                        .await,
                )
        })
    }
    __private::inventory::submit!(
        { let mut __plugin = __private::Plugin::new("join", "Joins words.", & [&
        __of_between, & __of_words, & __of_before, & __of_how], __RETURNS.schema, __run,
        __private::Place { module_path : ::core::module_path!(), file : ::core::file!(),
        line : ::core::line!(), },); __plugin }
    );
};
