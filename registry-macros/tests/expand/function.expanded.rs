/// Current weather for a city.
///
/// Further paragraphs are for people.
/**
# Parameters

- `city`: City name, e.g. "Oslo".
- `days`: Days ahead.
- `style`: How it is written.
- `key`: The key of the service.*/
async fn weather(
    ctx: &ToolContext,
    city: String,
    days: u8,
    style: Option<Style>,
    key: &str,
) -> Result<Forecast, ToolError> {
    forecast(ctx, city, days, style).await
}
#[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated)]
const _: () = {
    use ::registry_core::__private;
    use __private::Otherwise as _;
    static __of_ctx: __private::Parameter<<ToolContext as __private::Lend>::Held> = __private::Parameter::unless_provided(
        <<ToolContext as __private::Lend>::Held as __private::FromCall<_>>::PARAMETER
            .named(
                "ctx",
                "",
                __private::Type::<<ToolContext as __private::Lend>::Held>::ABSENT,
            ),
        "tool `weather`: the argument `ctx` has no doc comment\nhelp: say in `/// …` above it what the model is to give",
    );
    static __of_city: __private::Parameter<String> = <String as __private::FromCall<
        _,
    >>::PARAMETER
        .named("city", "City name, e.g. \"Oslo\".", __private::Type::<String>::ABSENT);
    static __of_days: __private::Parameter<u8> = <u8 as __private::FromCall<
        _,
    >>::PARAMETER
        .named("days", "Days ahead.", __private::Type::<u8>::ABSENT)
        .default(|| __private::Type::<u8>::of(3), <u8 as __private::Shown>::SHOW)
        .bounds(|| ::std::vec::Vec::from([
            <u8 as __private::Number>::range(
                ::core::option::Option::Some(1),
                ::core::option::Option::Some(14),
                false,
            ),
        ]));
    static __of_style: __private::Parameter<Option<Style>> = <Option<
        Style,
    > as __private::FromCall<_>>::PARAMETER
        .named("style", "How it is written.", __private::Type::<Option<Style>>::ABSENT);
    static __of_key: __private::Parameter<<str as __private::Lend>::Held> = <<str as __private::Lend>::Held as __private::FromCall<
        _,
    >>::PARAMETER
        .named(
            "key",
            "The key of the service.",
            __private::Type::<<str as __private::Lend>::Held>::ABSENT,
        )
        .bounds(|| ::std::vec::Vec::from([__private::Bound::Secret]));
    static __RETURNS: __private::Returns<Forecast> = __private::returns::<Forecast, _>();
    static __FAILS: __private::Fails<ToolError> = __private::fails::<ToolError>();
    fn __run<'__a>(
        __context: &'__a __private::ToolContext,
        __given: __private::Given,
    ) -> __private::ToolFuture<'__a> {
        __private::boxed(async move {
            let (
                __value_ctx,
                (__value_city, (__value_days, (__value_style, (__value_key, ())))),
            ) = __private::take(
                (&__of_ctx, (&__of_city, (&__of_days, (&__of_style, (&__of_key, ()))))),
                __context,
                __given,
            )?;
            __RETURNS
                .give_or(
                    &__FAILS,
                    weather(
                            &__value_ctx,
                            __value_city,
                            __value_days,
                            __value_style,
                            &__value_key,
                        )
                        .await,
                )
        })
    }
    __private::inventory::submit!(
        { let mut __plugin = __private::Plugin::new("weather",
        "Current weather for a city.", & [& __of_ctx, & __of_city, & __of_days, &
        __of_style, & __of_key], __RETURNS.schema, __run, __private::Place { module_path
        : ::core::module_path!(), file : ::core::file!(), line : ::core::line!(), },);
        __plugin }
    );
};
