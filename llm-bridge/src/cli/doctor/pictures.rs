//! Whether the model sees pictures.

use toolrack_apis::{Content, Media, MediaKind, MediaSource};

use super::{
    report::{Finding, Verdict, instead},
    session::Session,
};

/// Pictures of one colour, 64 by 64, as PNG in Base64. Who does not look gives both the same colour.
const PICTURES: [(&str, &str); 2] = [
    (
        "red",
        "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PQQkAAAgAsetfWiP4FgYrsKZeS0BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEDgsqnc8OJg6Ln3AAAAAElFTkSuQmCC",
    ),
    (
        "blue",
        "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PQQkAAAgAsetfWiP4FgYrsGqeExAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBA4LMf88OL0EKXAAAAAAElFTkSuQmCC",
    ),
];

pub(super) async fn pictures(session: &mut Session<'_>) -> Finding {
    let (mut right, mut tries) = (0, 0);
    let mut wrong = None;
    for (colour, png) in PICTURES {
        let mut request = Session::question("Which colour has this picture? Answer with one word.", 512);
        let media = Media {
            media_type: Some("image/png".to_owned()),
            ..Media::new(MediaKind::Image, MediaSource::Data(png.to_owned()))
        };
        if let Some(message) = request.messages.last_mut() {
            message.parts.push(Content::Media(media).into());
        }
        let answered = match session.ask(request).await {
            Ok(answered) => answered,
            Err(error) => return error.into(),
        };
        tries += 1;
        // One that names all colours has seen none.
        let words = answered.words().to_lowercase();
        let named = PICTURES.iter().filter(|(name, _)| words.contains(name)).count();
        if words.contains(colour) && named == 1 {
            right += 1;
        } else {
            wrong = Some(format!("takes them and does not see them; {}", instead(&answered)));
            break;
        }
    }
    match wrong {
        Some(wrong) => Finding { verdict: Verdict::No, ..Finding::of(right, tries, wrong) },
        None => Finding::of(right, tries, ""),
    }
}
