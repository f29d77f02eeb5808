use std::{io::Cursor, time::Instant};

use base64::Engine;
use image::{
    DynamicImage, GenericImageView, ImageEncoder, ImageFormat, Rgba, RgbaImage,
    codecs::{jpeg::JpegEncoder, webp::WebPEncoder},
};
use toolrack_apis::{Media, MediaKind, MediaSource, ToolResult};

use super::{
    describe::described,
    scale::{BASE64, MAX_BYTES, Scaled, scale},
    *,
};

/// Drawn, with a part that one can see through.
fn drawn(width: u32, height: u32) -> DynamicImage {
    let pixel = |x, y| Rgba([(x % 251) as u8, (y % 241) as u8, 9, if x < 5 { 0 } else { 255 }]);
    RgbaImage::from_fn(width, height, pixel).into()
}

/// What no format makes small.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut random = fastrand::Rng::with_seed(7);
    RgbaImage::from_fn(width, height, |_, _| Rgba([random.u8(..), random.u8(..), random.u8(..), 255])).into()
}

fn bytes(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    match format {
        ImageFormat::Jpeg => DynamicImage::from(image.to_rgb8()).write_to(&mut bytes, format).unwrap(),
        ImageFormat::WebP => {
            image.write_with_encoder(WebPEncoder::new_lossless(&mut bytes)).unwrap();
        }
        _ => image.write_to(&mut bytes, format).unwrap(),
    }
    bytes.into_inner()
}

fn base64(image: &DynamicImage, format: ImageFormat) -> String {
    BASE64.encode(bytes(image, format))
}

#[track_caller]
fn other(scaled: Scaled) -> (DynamicImage, &'static str, usize) {
    let Scaled::Other { data, media_type } = scaled else { panic!("{scaled:?}") };
    let bytes = BASE64.decode(&*data).unwrap();
    assert_eq!(image::guess_format(&bytes).unwrap().to_mime_type(), media_type);
    (image::load_from_memory(&bytes).unwrap(), media_type, bytes.len())
}

#[track_caller]
fn unfit(scaled: Scaled) -> (Option<(u32, u32)>, String) {
    let Scaled::Unfit { dimensions, why } = scaled else { panic!("{scaled:?}") };
    (dimensions, why)
}

#[test]
fn g12_a_picture_that_fits_is_not_touched() {
    let image = drawn(64, 40);
    for (format, name) in [(ImageFormat::Png, "image/png"), (ImageFormat::Jpeg, "image/jpeg")] {
        let data = base64(&image, format);
        assert_eq!(scale(&data, name, 64), Scaled::AsItIs);
        // Only what is said of it is put right.
        for (data, said) in [
            (data.clone(), "application/octet-stream"),
            (data.clone(), ""),
            (data.trim_end_matches('=').to_owned() + "\n", name),
        ] {
            let Scaled::Other { data: mended, media_type } = scale(&data, said, 64) else { panic!() };
            assert_eq!((BASE64.decode(&*mended).unwrap(), media_type), (bytes(&image, format), name));
        }
    }
}

/// What decoders here make the best of, and those of servers refuse or see white in.
#[test]
fn g12_a_jpeg_without_an_end_and_a_png_of_16_bits_are_written_anew() {
    let jpeg = bytes(&noise(400, 300), ImageFormat::Jpeg);
    let (image, media_type, _) = other(scale(&BASE64.encode(&jpeg[..jpeg.len() / 2]), "image/jpeg", 640));
    assert_eq!((image.dimensions(), media_type), ((400, 300), "image/jpeg"));
    let gray = image::ImageBuffer::from_pixel(40, 30, image::Luma([30_000_u16]));
    let (image, media_type, _) =
        other(scale(&base64(&DynamicImage::ImageLuma16(gray), ImageFormat::Png), "image/png", 640));
    assert_eq!((image.color().bytes_per_pixel(), media_type), (image.color().channel_count(), "image/png"));
    assert_eq!(image.get_pixel(3, 3).0, [117, 117, 117, 255]);
}

#[test]
fn g12_a_large_picture_is_scaled_in_its_shape() {
    for (format, name) in [
        (ImageFormat::Png, "image/png"),
        (ImageFormat::Jpeg, "image/jpeg"),
        (ImageFormat::Gif, "image/png"),
        (ImageFormat::WebP, "image/png"),
    ] {
        for (size, expected) in [((300, 150), (64, 32)), ((100, 128), (50, 64)), ((1000, 2), (64, 1))] {
            let (image, media_type, _) =
                other(scale(&base64(&drawn(size.0, size.1), format), format.to_mime_type(), 64));
            assert_eq!((image.dimensions(), media_type), (expected, name), "{format:?}");
        }
    }
    // Not all servers read these.
    for format in [ImageFormat::Gif, ImageFormat::WebP] {
        let (image, media_type, _) = other(scale(&base64(&drawn(60, 40), format), format.to_mime_type(), 64));
        assert_eq!((image.dimensions(), media_type), ((60, 40), "image/png"));
        assert_eq!(image.get_pixel(2, 2).0[3], 0, "{format:?}");
    }
}

#[test]
fn g12_a_heavy_picture_becomes_a_jpeg_on_white() {
    let mut image = noise(640, 640);
    if let DynamicImage::ImageRgba8(image) = &mut image {
        (0..64).for_each(|x| (0..64).for_each(|y| image.put_pixel(x, y, Rgba([0, 0, 0, 0]))));
    }
    let data = base64(&image, ImageFormat::Png);
    assert!(data.len() / 4 * 3 > MAX_BYTES);
    let (image, media_type, length) = other(scale(&data, "image/png", 1568));
    assert_eq!((image.dimensions(), media_type), ((640, 640), "image/jpeg"));
    assert!(length <= MAX_BYTES);
    assert!(image.get_pixel(20, 20).0.iter().all(|channel| *channel > 240), "{:?}", image.get_pixel(20, 20));
}

#[test]
fn g12_a_photograph_stands_upright() {
    // TIFF with one field: the orientation 6, a quarter turn clockwise.
    let exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0".to_vec();
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new(&mut bytes);
    encoder.set_exif_metadata(exif).unwrap();
    DynamicImage::from(drawn(200, 100).to_rgb8()).write_with_encoder(encoder).unwrap();
    let data = BASE64.encode(bytes);
    for (max_edge, dimensions) in [(64, (32, 64)), (1568, (100, 200))] {
        let (image, ..) = other(scale(&data, "image/jpeg", max_edge));
        assert_eq!(image.dimensions(), dimensions);
    }
}

/// The checksum of a chunk of PNG.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn png_of(width: u32, height: u32) -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 6, 0, 0, 0]].concat();
    for (kind, data) in
        [(b"IHDR", header.as_slice()), (b"IDAT", &[0x78, 0x9c, 3, 0, 0, 0, 0, 1]), (b"IEND", &[])]
    {
        png.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        let chunk = [&kind[..], data].concat();
        png.extend_from_slice(&chunk);
        png.extend(crc(&chunk).to_be_bytes());
    }
    png
}

#[test]
fn g12_a_bomb_is_described_at_once() {
    let began = Instant::now();
    let mut jpeg = bytes(&drawn(16, 16), ImageFormat::Jpeg);
    let frame = jpeg.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xff, 0x00, 0xff, 0x00]);
    let mut gif = bytes(&drawn(16, 16), ImageFormat::Gif);
    gif[6..10].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
    let webp =
        [b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".as_slice(), &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]]
            .concat();
    for (bytes, size) in [
        (png_of(50_000, 50_000), Some((50_000, 50_000))),
        (png_of(20_000, 2_501), Some((20_000, 2_501))),
        (png_of(0x7fff_ffff, 0x7fff_ffff), None),
        (png_of(30_000, 1), Some((30_000, 1))),
        (jpeg, Some((0xff00, 0xff00))),
        (gif, Some((0xffff, 0xffff))),
        (webp, None),
    ] {
        let (dimensions, why) = unfit(scale(&BASE64.encode(bytes), "image/png", 1568));
        assert!(size.is_none_or(|size| dimensions == Some(size)), "{dimensions:?}");
        assert!(size.is_none() || why.contains("too many pixels"), "{why}");
    }
    // Within the bounds and nothing behind it.
    let (_, why) = unfit(scale(&BASE64.encode(png_of(7000, 7000)), "image/png", 1568));
    assert!(why.contains("cannot be decoded"), "{why}");
    let (_, why) = unfit(scale(&"A".repeat(40 << 20), "image/png", 1568));
    assert!(why.contains("larger than 24 MiB"), "{why}");
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}

#[test]
fn g12_what_is_no_picture_is_described() {
    for (data, reason) in [
        ("not base64!".to_owned(), "not Base64"),
        (BASE64.encode("<svg xmlns='http://www.w3.org/2000/svg'/>"), "none of PNG"),
        (BASE64.encode("BM\0\0\0\0\0\0\0\0\0\0"), "none of PNG"),
        (String::new(), "none of PNG"),
        (BASE64.encode(&bytes(&drawn(64, 64), ImageFormat::Png)[..200]), "cannot be decoded"),
        (BASE64.encode(b"GIF89a"), "cannot be decoded"),
        (BASE64.encode(png_of(0, 5)), ""),
        // Nothing of no size, and one picture in it.
        (BASE64.encode(b"GIF89a\0\0\0\0\0\0\0,\0\0\0\0\0\0\0\0\0\x02\x01\0\0;"), ""),
    ] {
        let (_, why) = unfit(scale(&data, "image/png", 64));
        assert!(why.contains(reason), "{why}");
    }
}

#[test]
fn g12_bytes_of_anything_never_panic() {
    let mut random = fastrand::Rng::with_seed(11);
    for format in scale::FORMATS {
        let whole = bytes(&drawn(40, 30), format);
        for _ in 0..300 {
            let mut bytes = whole.clone();
            bytes.truncate(random.usize(1..=bytes.len()));
            for _ in 0..random.usize(..8) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            let _ = scale(&BASE64.encode(&bytes), "", 32);
        }
    }
}

fn picture(data: String) -> Media {
    Media { media_type: Some("image/png".into()), ..Media::new(MediaKind::Image, MediaSource::Data(data)) }
}

fn result(contents: Vec<Content>) -> Message {
    let parts = contents.into_iter().map(Part::from).collect();
    Message::result(ToolResult { call_id: "c".into(), parts, ..ToolResult::default() })
}

fn texts(message: &Message) -> Vec<String> {
    let part = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::Media(media) => format!("{:?}", media.media_type),
        other => panic!("{other:?}"),
    };
    message.tool_result().unwrap().parts.iter().map(part).collect()
}

#[tokio::test]
async fn g12_pictures_before_the_last_ones_and_other_files_are_described_in_the_text() {
    let data = base64(&drawn(20, 10), ImageFormat::Png);
    let length = BASE64.decode(&data).unwrap().len();
    let text = || Content::Text("Here.".into());
    let media = || Content::Media(picture(data.clone()));
    let sound = Media::new(MediaKind::Audio, MediaSource::Data("QUJD".into()));
    let user = Message::new(toolrack_apis::Role::User, vec![media().into()]);
    let mut messages = vec![
        result(vec![text(), media(), text()]),
        user.clone(),
        result(vec![media(), Content::Media(sound), text()]),
        result(vec![Content::Media(Media::new(MediaKind::Image, MediaSource::Url("https://a/b".into())))]),
    ];
    let whole = messages.clone();
    Pictures::default().fit(&mut messages, 3, 64).await;
    let older = |most: &str| {
        format!("[picture, image/png, 20 x 10 pixels, {length} bytes; not shown: only the last {most} shown]")
    };
    assert_eq!(texts(&messages[0]), [format!("Here.\n{}\nHere.", older("3 pictures are"))]);
    assert_eq!(messages[1], user);
    let png = "Some(\"image/png\")";
    let sound = "[recording, 3 bytes; not shown: models get pictures and text of results]\nHere.";
    assert_eq!(texts(&messages[2]), [png, sound]);
    assert_eq!(messages[3], whole[3]);

    assert_eq!((described(&whole, 4), count(&whole)), (None, 4));
    let two = described(&whole, 2).unwrap();
    assert_eq!((count(&two), &two[1]), (2, &user));
    assert_eq!(texts(&two[2])[0], older("2 pictures are"));
    let none = described(&whole, 0).unwrap();
    assert_eq!(count(&none), 0);
    assert!(
        texts(&none[0])[0].contains("20 x 10 pixels")
            && texts(&none[0])[0].contains("this model gets no pictures")
    );
    assert_eq!(texts(&none[3]), ["[picture, https://a/b; not shown: this model gets no pictures]"]);
}

/// Clients send a conversation again with each request.
#[tokio::test]
async fn g12_a_picture_is_scaled_once() {
    let pictures = Pictures::default();
    let whole = vec![result(vec![Content::Media(picture(base64(&drawn(200, 100), ImageFormat::Png)))])];
    let fitted = async |edge| {
        let mut messages = whole.clone();
        pictures.fit(&mut messages, 8, edge).await;
        messages
    };
    let once = fitted(64).await;
    assert_ne!(once, whole);
    assert_eq!(fitted(64).await, once);
    pictures.scaled.run_pending_tasks();
    assert_eq!(pictures.scaled.entry_count(), 1);
    assert_ne!(fitted(32).await, once);
    pictures.scaled.run_pending_tasks();
    assert_eq!(pictures.scaled.entry_count(), 2);
}

#[test]
fn g12_a_result_has_text_pictures_and_descriptions_of_the_rest() {
    use registry_core::{Content, ToolResult};
    use serde_json::json;

    let content = |block| serde_json::from_value::<Content>(block).unwrap();
    let image = || content(json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}));
    let blob = |mime: &str| {
        let resource = json!({"uri": "file:///door", "mimeType": mime, "blob": "AAAA"});
        content(json!({"type": "resource", "resource": resource}))
    };
    let result = ToolResult::new("Two.")
        .with_content(image())
        .with_content(content(json!({"type": "text", "text": "Words."})))
        .with_content(blob("image/jpeg"))
        .with_content(blob("application/pdf"))
        .with_content(content(json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"})))
        .with_content(content(json!({"type": "resource", "resource": {"uri": "a:b", "text": "its text"}})))
        .with_content(content(json!({"type": "resource_link", "uri": "a:c", "name": "c", "size": 9})));
    let (text, pictures) = text_and_pictures(&result);
    let lines = [
        "Two.",
        "Words.",
        "[`door`, application/pdf, 3 bytes: shown to the user]",
        "[`sound.wav`, audio/wav, 3 bytes: shown to the user]",
        "its text",
        "c: a:c (9 bytes)",
    ];
    assert_eq!(text, lines.join("\n"));
    let names: Vec<_> =
        pictures.iter().map(|picture| (picture.media_type.as_deref(), picture.name.as_deref())).collect();
    assert_eq!(names, [(Some("image/png"), None), (Some("image/jpeg"), Some("file:///door"))]);

    let only = ToolResult { content: vec![image()], ..ToolResult::new(json!(null)) };
    assert_eq!(text_and_pictures(&only).0, "");
    let many = (0..70).fold(ToolResult::new(json!({"a": 1})), |result, _| result.with_content(image()));
    let (text, pictures) = text_and_pictures(&many);
    assert_eq!((text.as_str(), pictures.len()), ("{\"a\":1}\n[6 more pictures]", 64));
}
