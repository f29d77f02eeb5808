//! Names people use for what tools want as codes.

/// Currencies: code, and the names for it as stems.
pub(super) const CURRENCIES: &[(&str, &[&str])] = &[
    ("USD", &["usd", "dollar", "buck"]),
    ("EUR", &["eur", "euro"]),
    ("GBP", &["gbp", "pound", "sterling"]),
    ("JPY", &["jpi", "yen"]),
    ("CHF", &["chf", "franc"]),
    ("NOK", &["nok"]),
    ("SEK", &["sek"]),
    ("DKK", &["dkk"]),
    ("PLN", &["pln", "zloti"]),
    ("INR", &["inr", "rupe"]),
    ("CNY", &["cni", "yuan", "renminbi"]),
    ("CAD", &["cad"]),
    ("AUD", &["aud"]),
];

/// Languages: code and name.
pub(super) const LANGUAGES: &[(&str, &str)] = &[
    ("en", "English"),
    ("fr", "French"),
    ("de", "German"),
    ("es", "Spanish"),
    ("it", "Italian"),
    ("pt", "Portuguese"),
    ("nl", "Dutch"),
    ("no", "Norwegian"),
    ("sv", "Swedish"),
    ("da", "Danish"),
    ("fi", "Finnish"),
    ("pl", "Polish"),
    ("cs", "Czech"),
    ("uk", "Ukrainian"),
    ("ru", "Russian"),
    ("tr", "Turkish"),
    ("el", "Greek"),
    ("ar", "Arabic"),
    ("hi", "Hindi"),
    ("zh", "Chinese"),
    ("ja", "Japanese"),
    ("ko", "Korean"),
    ("la", "Latin"),
];

/// What else a value of a list is called: `EUR` is `euro`, `fr` is `french`.
pub(super) fn aliases(value: &str) -> Vec<String> {
    let currency = CURRENCIES.iter().filter(|(code, _)| *code == value).flat_map(|(_, names)| names.iter());
    let language = LANGUAGES
        .iter()
        .filter(|(code, _)| *code == value)
        .map(|(_, name)| super::words::stem(&name.to_lowercase()));
    currency.map(|name| (*name).to_owned()).chain(language).collect()
}
