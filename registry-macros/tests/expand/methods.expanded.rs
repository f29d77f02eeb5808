impl Weather {
    /// Says what it is like.
    /**
# Parameters

- `city`: Where.*/
    pub async fn weather(&self, city: &str) -> String {
        self.ask(city).await
    }
    fn help(&self) {}
}
#[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated)]
const _: () = {
    use ::registry_core::__private;
    use __private::Otherwise as _;
    static __of_self: __private::Parameter<__private::Resource<Weather>> = <__private::Resource<
        Weather,
    > as __private::FromCall<_>>::PARAMETER
        .named("", "", __private::Type::<__private::Resource<Weather>>::ABSENT);
    static __of_city: __private::Parameter<<str as __private::Lend>::Held> = <<str as __private::Lend>::Held as __private::FromCall<
        _,
    >>::PARAMETER
        .named(
            "city",
            "Where.",
            __private::Type::<<str as __private::Lend>::Held>::ABSENT,
        );
    static __RETURNS: __private::Returns<String> = __private::returns::<String, _>();
    fn __run<'__a>(
        __context: &'__a __private::ToolContext,
        __given: __private::Given,
    ) -> __private::ToolFuture<'__a> {
        __private::boxed(async move {
            let (__value_self, (__value_city, ())) = __private::take(
                (&__of_self, (&__of_city, ())),
                __context,
                __given,
            )?;
            __RETURNS.give(<Weather>::weather(&__value_self, &__value_city).await)
        })
    }
    __private::inventory::submit!(
        { let mut __plugin = __private::Plugin::new("weather", "Says what it is like.", &
        [& __of_self, & __of_city], __RETURNS.schema, __run, __private::Place {
        module_path : ::core::module_path!(), file : ::core::file!(), line :
        ::core::line!(), },); __plugin.policy.timeout = secs(1); __plugin }
    );
};
