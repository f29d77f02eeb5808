//! Reads one picture, which anybody may have made, and scales it.

use std::{io::Cursor, sync::Arc};

use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use image::{
    DynamicImage, GenericImageView, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage,
    codecs::jpeg::JpegEncoder, imageops::FilterType, metadata::Orientation,
};
use toolrack_apis::{Content, Media, MediaSource};

/// The largest picture that a model is sent, in bytes: a megabyte is enough for [`max_edge`](crate::turn::Limits::max_picture_edge) in JPEG.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The largest picture that is read, in bytes.
const MAX_READ: usize = 24 << 20;
/// The longest edge of one, in pixels.
const MAX_EDGE: u32 = 20_000;
/// How many pixels one has at most: those of a large camera.
const MAX_PIXELS: u64 = 50_000_000;
/// How many bytes a decoder may take: four for each pixel, and some for itself.
pub(super) const MAX_MEMORY: u64 = 320 << 20;
/// In which qualities JPEG is tried.
const QUALITIES: [u8; 3] = [85, 65, 40];

/// The formats that are read.
pub(super) const FORMATS: [ImageFormat; 4] =
    [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP];

/// Reads Base64 with and without padding.
pub(in super::super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What has become of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scaled {
    /// It is fit as it is.
    AsItIs,
    /// This is fit, in Base64.
    Other { data: Arc<str>, media_type: &'static str },
    /// It cannot be made fit, for this reason. Its size in pixels, if known.
    Unfit { dimensions: Option<(u32, u32)>, why: String },
}

impl Scaled {
    fn unfit(dimensions: Option<(u32, u32)>, why: impl Into<String>) -> Self {
        Self::Unfit { dimensions, why: why.into() }
    }

    /// About how many bytes it takes in memory.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::AsItIs => 0,
            Self::Other { data, .. } => data.len(),
            Self::Unfit { why, .. } => why.len(),
        }
    }

    /// What stands for the picture; `None` for itself.
    pub(super) fn content(self, media: &Media) -> Option<Content> {
        match self {
            Self::AsItIs => None,
            Self::Other { data, media_type } => Some(Content::Media(Media {
                source: MediaSource::Data(data.as_ref().to_owned()),
                media_type: Some(media_type.to_owned()),
                kind: media.kind,
                name: media.name.clone(),
                detail: media.detail.clone(),
            })),
            Self::Unfit { dimensions, why } => Some(Content::Text(media.description(dimensions, &why))),
        }
    }
}

/// Makes a picture in Base64, which is said to be of a type, fit for models: a PNG or JPEG of [`MAX_BYTES`] and `max_edge` pixels, as all
/// model servers read those two (llama.cpp and what is built on it read no WebP). One that fits already is not touched. It is decoded in any
/// case: a server that cannot read it refuses the whole conversation, from then on.
///
/// Takes up to [`MAX_MEMORY`], and seconds for the largest.
pub(super) fn scale(data: &str, said: &str, max_edge: u32) -> Scaled {
    if data.len() / 4 * 3 > MAX_READ {
        return Scaled::unfit(None, format!("it is larger than {} MiB", MAX_READ >> 20));
    }
    let (bytes, is_canonical) = match BASE64.decode(data) {
        Ok(bytes) => (bytes, data.len().is_multiple_of(4)),
        // Some encoders break lines.
        Err(_) => match BASE64.decode(data.split_ascii_whitespace().collect::<String>()) {
            Ok(bytes) => (bytes, false),
            Err(_) => return Scaled::unfit(None, "its data is not Base64"),
        },
    };
    let Some(format) = image::guess_format(&bytes).ok().filter(|format| FORMATS.contains(format)) else {
        return Scaled::unfit(None, "its format is none of PNG, JPEG, GIF and WebP");
    };
    let Decoded { image, dimensions, is_upright } = match decode(&bytes, format) {
        Ok(decoded) => decoded,
        Err(unfit) => return unfit,
    };
    let is_sendable = is_upright && !has_wide_channels(&image) && is_whole(&bytes, format);
    if is_sendable && bytes.len() <= MAX_BYTES && dimensions.0.max(dimensions.1) <= max_edge {
        let media_type = format.to_mime_type();
        return match is_canonical && said == media_type {
            true => Scaled::AsItIs,
            false => Scaled::Other { data: BASE64.encode(&bytes).into(), media_type },
        };
    }
    drop(bytes);
    match encode(&shrink(image, max_edge), format == ImageFormat::Jpeg) {
        Some((bytes, format)) => {
            Scaled::Other { data: BASE64.encode(bytes).into(), media_type: format.to_mime_type() }
        }
        None => Scaled::unfit(Some(dimensions), "it cannot be made small enough"),
    }
}

/// Whether a picture is a PNG, or a JPEG with its end: what is before a missing end is decoded here, and refused by some servers.
fn is_whole(bytes: &[u8], format: ImageFormat) -> bool {
    match format {
        ImageFormat::Png => true,
        ImageFormat::Jpeg => bytes.ends_with(b"\xff\xd9"),
        _ => false,
    }
}

/// 16 bits a channel are for editing. Some servers (vLLM, which reads with Pillow) see nothing but white in them.
fn has_wide_channels(image: &DynamicImage) -> bool {
    let color = image.color();
    color.bytes_per_pixel() > color.channel_count()
}

/// A picture as it is to be looked at.
struct Decoded {
    image: DynamicImage,
    /// Its size as it is in the file.
    dimensions: (u32, u32),
    /// Whether it is that way round in the file too: model servers do not turn it.
    is_upright: bool,
}

/// Decodes a picture. Of an animation it is the first frame.
fn decode(bytes: &[u8], format: ImageFormat) -> Result<Decoded, Scaled> {
    let broken = |error: &image::ImageError| Scaled::unfit(None, format!("it cannot be decoded: {error}"));
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(MAX_EDGE), Some(MAX_EDGE));
    limits.max_alloc = Some(MAX_MEMORY);
    reader.limits(limits);
    // Decoders look at the edges themselves, and say nothing of the size then.
    let dimensions = ImageReader::with_format(Cursor::new(bytes), format).into_dimensions();
    let (width, height) = dimensions.map_err(|error| broken(&error))?;
    if width.max(height) > MAX_EDGE || u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(Scaled::unfit(Some((width, height)), "it has too many pixels to be scaled"));
    }
    let mut decoder = reader.into_decoder().map_err(|error| broken(&error))?;
    let orientation = decoder.orientation().map_err(|error| broken(&error))?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(|error| broken(&error))?;
    image.apply_orientation(orientation);
    let is_upright = orientation == Orientation::NoTransforms;
    Ok(Decoded { image, dimensions: (width, height), is_upright })
}

/// Shrinks a picture, its shape kept, until its longer edge is `max_edge`.
fn shrink(mut image: DynamicImage, max_edge: u32) -> DynamicImage {
    let longest = |image: &DynamicImage| image.width().max(image.height());
    // The good filter takes 16 bytes for a pixel.
    let rough = max_edge.saturating_mul(2);
    if longest(&image) > rough {
        image = image.thumbnail(rough, rough);
    }
    match longest(&image) > max_edge {
        true => image.resize(max_edge, max_edge, FilterType::CatmullRom),
        false => image,
    }
}

/// Writes a picture with [`MAX_BYTES`] at most: what was drawn in PNG, and photographs, or what is too large for that, in JPEG.
fn encode(image: &DynamicImage, is_photograph: bool) -> Option<(Vec<u8>, ImageFormat)> {
    if !is_photograph {
        let mut png = Cursor::new(Vec::new());
        let image = DynamicImage::from(image.to_rgba8());
        if image.write_to(&mut png, ImageFormat::Png).is_ok() && png.get_ref().len() <= MAX_BYTES {
            return Some((png.into_inner(), ImageFormat::Png));
        }
    }
    let flat = on_white(image);
    QUALITIES.into_iter().find_map(|quality| {
        let mut jpeg = Vec::new();
        JpegEncoder::new_with_quality(&mut jpeg, quality).encode_image(&flat).ok()?;
        (jpeg.len() <= MAX_BYTES).then_some((jpeg, ImageFormat::Jpeg))
    })
}

/// JPEG has nothing that one can see through.
fn on_white(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let mut flat = RgbImage::new(image.width(), image.height());
    for (to, (_, _, from)) in flat.pixels_mut().zip(image.pixels()) {
        let [red, green, blue, alpha] = from.0.map(u16::from);
        let over =
            |channel: u16| u8::try_from((channel * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX);
        to.0 = [red, green, blue].map(over);
    }
    flat
}
