//! XML, element by element: however deep they nest, that takes no stack.

use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_predefined_entity,
    events::{BytesStart, Event},
};

pub(super) fn damaged(error: &dyn std::fmt::Display) -> String {
    format!("it is damaged: {error}")
}

/// Goes through the elements of XML.
pub(super) fn elements(xml: &str, mut each: impl FnMut(&str, &BytesStart<'_>)) -> Result<(), String> {
    let mut reader = Reader::from_str(xml);
    loop {
        match reader.read_event().map_err(|error| damaged(&error))? {
            Event::Start(start) | Event::Empty(start) => each(start.local_name().as_ref(), &start),
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// What an attribute says, by its whole name or by that without its prefix.
pub(super) fn value(start: &BytesStart<'_>, name: &str) -> Option<String> {
    let is_named =
        |key: quick_xml::name::QName<'_>| key.as_ref() == name || key.local_name().as_ref() == name;
    let found = start.attributes().flatten().find(|attribute| is_named(attribute.key))?;
    Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
}

/// What an event says, if it is text.
pub(super) fn said(event: &Event<'_>) -> Option<String> {
    match event {
        Event::Text(text) => Some(text.xml10_content().into_owned()),
        Event::CData(text) => Some(text.xml10_content().into_owned()),
        Event::GeneralRef(name) => match name.resolve_char_ref().ok()? {
            Some(c) => Some(c.to_string()),
            None => resolve_predefined_entity(name).map(str::to_owned),
        },
        _ => None,
    }
}
