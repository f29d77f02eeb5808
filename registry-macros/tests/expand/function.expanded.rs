/// Current weather for a city.
///
/// Further paragraphs are for people.
///
/// # Parameters
///
/// - `city`: City name, e.g. "Oslo".
/// - `days`: Days ahead.
/// - `style`: How it is written.
/// - `key`: The key of the service.
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
    const __of_city: __private::Parameter<String> = __private::parameter::<
        String,
    >("city", "City name, e.g. \"Oslo\".");
    const __of_days: __private::Parameter<u8> = __private::parameter::<
        u8,
    >("days", "Days ahead.")
        .default(|| 3)
        .bounds(|| ::std::vec::Vec::from([
            __private::range::<
                u8,
            >(::core::option::Option::Some(1), ::core::option::Option::Some(14), false),
        ]));
    const __of_style: __private::Parameter<::core::option::Option<Style>> = __private::optional::<
        Style,
    >("style", "How it is written.");
    const __of_key: __private::Parameter<::std::string::String> = __private::parameter::<
        ::std::string::String,
    >("key", "The key of the service.")
        .bounds(|| ::std::vec::Vec::from([__private::Bound::Secret]));
    const __RETURNS: __private::Returns<Forecast> = __private::returns::<Forecast>();
    const __FAILS: __private::Fails<ToolError> = __private::fails::<ToolError>();
    fn __run<'__a>(
        __context: &'__a __private::ToolContext,
        __given: __private::Map<::std::string::String, __private::Value>,
    ) -> __private::BoxFuture<
        '__a,
        ::core::result::Result<__private::ToolResult, __private::ToolError>,
    > {
        ::std::boxed::Box::pin(async move {
            let (__value_city, (__value_days, (__value_style, (__value_key, ())))) = __private::take(
                (&__of_city, (&__of_days, (&__of_style, (&__of_key, ())))),
                __given,
            )?;
            __RETURNS
                .give_or(
                    &__FAILS,
                    weather(
                            __context,
                            __value_city,
                            __value_days,
                            __value_style,
                            &__value_key,
                        )
                        .await,
                )
        })
    }
    const __PLUGIN: __private::Plugin = {
        let mut __plugin = __private::Plugin::new(
            "weather",
            "Current weather for a city.",
            || __private::of_parameters(
                &[&__of_city, &__of_days, &__of_style, &__of_key],
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
