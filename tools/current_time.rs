use jiff::{
    Timestamp, Zoned,
    tz::{TimeZone, TimeZoneDatabase},
};
use registry_core::prelude::*;

const SUGGESTIONS: usize = 3;

/// What a clock and a calendar on the wall say.
#[output]
#[derive(Debug)]
struct LocalTime {
    /// The time, such as `14:05:09`.
    time: String,
    /// The date, such as `2026-11-21`.
    date: String,
    /// The day of the week, such as `Saturday`.
    weekday: String,
    /// How far ahead of UTC, such as `+02:00`.
    utc_offset: String,
    /// The zone's name.
    time_zone: String,
    /// All of it in one, as RFC 3339 writes it.
    timestamp: String,
}

/// Get the current time, date and weekday, here or in another time zone. Use it whenever an answer depends on what time or day it is.
///
/// Zones and their rules come with the program; the zone of "here" is the system's.
#[tool(
    title = "Clock",
    version = "1.0.0",
    tags = ["time"],
    reads = nothing,
    sends = nothing,
    timeout = secs(2),
    example = "What time is it in Tokyo?" => {"time_zone": "Tokyo"}
)]
async fn current_time(
    /// IANA time zone such as "Europe/Oslo", or its city. Default: the zone of this machine.
    #[arg(length = 1..=64, example = "Asia/Tokyo")]
    time_zone: Option<&str>,
) -> Result<LocalTime, ToolError> {
    let zone = match time_zone {
        Some(name) => find_zone(name)?,
        None => TimeZone::try_system().unwrap_or(TimeZone::UTC),
    };
    Ok(describe(&Timestamp::now().to_zoned(zone)))
}

fn describe(now: &Zoned) -> LocalTime {
    LocalTime {
        time: now.strftime("%H:%M:%S").to_string(),
        date: now.strftime("%Y-%m-%d").to_string(),
        weekday: now.strftime("%A").to_string(),
        utc_offset: now.strftime("%:z").to_string(),
        time_zone: now.time_zone().iana_name().unwrap_or("local").to_owned(),
        timestamp: now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    }
}

/// The zone of a name or of a city: the last part of a name, as in `Asia/Tokyo`.
fn find_zone(wanted: &str) -> Result<TimeZone, ToolError> {
    let zones = TimeZoneDatabase::bundled();
    let key = wanted.trim().replace(' ', "_").to_lowercase();
    if let Ok(zone) = zones.get(&key) {
        return Ok(zone);
    }
    let names: Vec<String> = zones.available().map(|name| name.as_str().to_owned()).collect();
    if let Some(zone) = names.iter().find(|name| city(name).to_lowercase() == key) {
        return Ok(zones.get(zone)?);
    }
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        strsim::jaro_winkler(&name, &key).max(strsim::jaro_winkler(city(&name), &key))
    };
    let mut ranked: Vec<(f64, &str)> = names.iter().map(|name| (likeness(name), name.as_str())).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let nearest: Vec<&str> = ranked.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect();
    Err(ToolError::invalid(format!("there is no time zone `{wanted}`")).with_feedback(format!(
        "`time_zone`: there is no time zone or zone city `{wanted}`. The nearest names are {}. Give an IANA name.",
        nearest.join(", ")
    )))
}

fn city(zone: &str) -> &str {
    zone.rsplit('/').next().unwrap_or(zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> String {
        find_zone(name).unwrap().iana_name().unwrap().to_owned()
    }

    #[test]
    fn a_zone_is_found_by_name_or_city() {
        for (name, expected) in [
            ("Asia/Tokyo", "Asia/Tokyo"),
            ("europe/oslo", "Europe/Oslo"),
            ("Tokyo", "Asia/Tokyo"),
            ("new york", "America/New_York"),
            ("America/New York", "America/New_York"),
            (" Buenos Aires ", "America/Argentina/Buenos_Aires"),
            ("UTC", "UTC"),
        ] {
            assert_eq!(zone(name), expected, "{name}");
        }
    }

    #[test]
    fn an_unknown_zone_gets_the_nearest_names() {
        for (name, nearest) in
            [("Tokio", "Asia/Tokyo"), ("Europe/Olso", "Europe/Oslo"), ("Barlin", "Europe/Berlin")]
        {
            let error = find_zone(name).unwrap_err();
            assert!(error.feedback().contains(nearest), "{}", error.feedback());
        }
    }

    #[test]
    fn a_time_is_described_where_it_is() {
        let now: Timestamp = "2026-11-21T23:05:09.5Z".parse().unwrap();
        let time = describe(&now.to_zoned(find_zone("Asia/Kolkata").unwrap()));
        assert_eq!(time.time, "04:35:09");
        assert_eq!(time.date, "2026-11-22");
        assert_eq!(time.weekday, "Sunday");
        assert_eq!(time.utc_offset, "+05:30");
        assert_eq!(time.time_zone, "Asia/Kolkata");
        assert_eq!(time.timestamp, "2026-11-22T04:35:09+05:30");
    }

    #[tokio::test]
    async fn without_a_zone_it_is_the_one_of_this_machine() {
        let now = current_time(None).await.unwrap();
        let there: Timestamp = now.timestamp.parse().unwrap();
        assert!(Timestamp::now().duration_since(there).abs().as_secs() < 60);
        assert_eq!(current_time(Some("UTC")).await.unwrap().utc_offset, "+00:00");
    }
}
