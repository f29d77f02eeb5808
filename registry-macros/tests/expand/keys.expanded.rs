/// Forgets everything.
#[cfg(feature = "forget")]
async fn forget() {}
#[cfg(feature = "forget")]
#[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated)]
const _: () = {
    use core_of_tools::__private;
    static __RETURNS: __private::Returns<()> = __private::returns::<(), _>();
    fn __run<'__a>(
        _: &'__a __private::ToolContext,
        _: __private::Given,
    ) -> __private::ToolFuture<'__a> {
        __private::boxed(async move { __RETURNS.give(forget().await) })
    }
    __private::inventory::submit!(
        { let mut __plugin = __private::Plugin::new("forget", "Forgets everything.", &
        [], __RETURNS.schema, __run, __private::Place { module_path :
        ::core::module_path!(), file : ::core::file!(), line : ::core::line!(), },);
        __plugin.name = "forget_all"; __plugin.title =
        ::core::option::Option::Some("Forget"); __plugin.version =
        ::core::option::Option::Some("1.2.0-rc.1"); __plugin.tags = & ["memory",
        "danger"]; __plugin.policy.permission = Permission::Owner; __plugin.policy.cost =
        Cost::Cheap; __plugin.policy.timeout = secs(10); __plugin.policy.cooldown =
        minutes(1); __plugin.policy.daily_limit = 3; __plugin.policy.requires_gate =
        true; __plugin.policy.effect = Effect::Destructive; __plugin.policy.idempotent =
        true; __plugin.policy.reads =
        ::core::option::Option::Some(__private::Reads::PRIVATE
        .and(__private::Reads::UNTRUSTED)); __plugin.policy.sends =
        ::core::option::Option::Some(__private::Sends::Outside); __plugin.policy.deferred
        = true; __plugin.policy.text_tag =
        ::core::option::Option::Some(__private::TextTag::new("FORGET")); __plugin.enabled
        = ::core::option::Option::Some(| ctx | ctx.caller().level > Permission::Admin);
        __plugin.deprecated = ::core::option::Option::Some("use `forget`"); __plugin }
    );
};
/// Says hello.
/**
# Parameters

- `name`: To whom.
- `times`: How often.*/
async fn hello(name: Option<&str>, times: u8) -> String {}
#[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated)]
const _: () = {
    use ::registry_core::__private;
    use __private::Otherwise as _;
    static __of_name: __private::Parameter<Option<<str as __private::Lend>::Held>> = <Option<
        <str as __private::Lend>::Held,
    > as __private::FromCall<_>>::PARAMETER
        .named(
            "name",
            "To whom.",
            __private::Type::<Option<<str as __private::Lend>::Held>>::ABSENT,
        );
    static __of_times: __private::Parameter<u8> = <u8 as __private::FromCall<
        _,
    >>::PARAMETER
        .named("times", "How often.", __private::Type::<u8>::ABSENT)
        .default(|| __private::Type::<u8>::of(1), <u8 as __private::Shown>::SHOW);
    static __RETURNS: __private::Returns<String> = __private::returns::<String, _>();
    const _: () = __private::Type::<Option<<str as __private::Lend>::Held>>::KIND
        .check(&__private::Literal::Text("Ada"));
    const _: () = __private::Type::<u8>::KIND.check(&__private::Literal::Integer(2));
    fn __run<'__a>(
        __context: &'__a __private::ToolContext,
        __given: __private::Given,
    ) -> __private::ToolFuture<'__a> {
        __private::boxed(async move {
            let (__value_name, (__value_times, ())) = __private::take(
                (&__of_name, (&__of_times, ())),
                __context,
                __given,
            )?;
            __RETURNS
                .give(hello(__private::lent::<str>(&__value_name), __value_times).await)
        })
    }
    __private::inventory::submit!(
        { let mut __plugin = __private::Plugin::new("hello", "Says hello.", & [&
        __of_name, & __of_times], __RETURNS.schema, __run, __private::Place { module_path
        : ::core::module_path!(), file : ::core::file!(), line : ::core::line!(), },);
        __plugin.examples = & [__private::PluginExample { question : "Greet Ada twice.",
        arguments : & [("name", __private::Literal::Text("Ada")), ("times",
        __private::Literal::Integer(2))] }, __private::PluginExample { question :
        "Greet.", arguments : & [] }]; __plugin }
    );
};
