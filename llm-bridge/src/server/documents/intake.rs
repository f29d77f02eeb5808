//! Receives and reads uploaded files, with limits on how many at once.

use std::{path::Path, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, StatusCode, header},
};
use futures_util::StreamExt;
use registry_core::ToolError;
use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::{Instant, timeout, timeout_at},
};
use toolrack_documents::{Document, DocumentKind, read};

use super::shares::{UserPlace, Users};
use crate::server::{
    openapi::operation::BYTES,
    requests::{api_error::ApiError, body::is_sent_as},
};

/// How many files are in memory at once.
const TAKEN_AT_ONCE: usize = 12;
/// How many files are read at once; one of each user.
const READ_AT_ONCE: usize = 2;
/// How long another file waits until it may come into memory, and how long one that is there until it is read.
const WAITS: Duration = Duration::from_secs(20);
const WAITS_TO_BE_READ: Duration = Duration::from_secs(180);
/// The timeout of an upload.
const COMES_IN: Duration = Duration::from_secs(10 * 60);
/// The minimum speed of an upload: this many bytes, or the rest, within this time.
const PORTION: usize = 256 * 1024;
const PORTION_COMES_IN: Duration = Duration::from_secs(30);
/// The timeout of reading a file.
const READ_IN: Duration = Duration::from_secs(90);

/// Receives files and reads them.
#[derive(Debug, Clone)]
pub(super) struct Intake {
    taking: Arc<Semaphore>,
    users: Users,
    reading: Arc<Semaphore>,
    read_in: Duration,
}

impl Default for Intake {
    fn default() -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        let (taking, reading) = (semaphore(TAKEN_AT_ONCE), semaphore(READ_AT_ONCE));
        Self { taking, users: Arc::default(), reading, read_in: READ_IN }
    }
}

/// A file that was received.
pub(super) struct Taken {
    pub(super) file: read::File,
    /// In bytes.
    pub(super) size: u64,
    /// Released when the file is.
    pub(super) place: Place,
}

/// A file's share of the limits.
pub(super) struct Place {
    _of_all: OwnedSemaphorePermit,
    of_the_user: UserPlace,
}

/// A file that was read.
pub(super) struct Read {
    pub(super) document: Document,
    /// Held until the document is stored, because splitting it is work as well.
    pub(super) permits: Permits,
}

/// That a file is read: of its user, and of all.
type Permits = [OwnedSemaphorePermit; 2];

/// Checks the content type, which a form of another page cannot send without a preflight request.
///
/// # Errors
/// When it is another.
pub(super) fn check_bytes(headers: &HeaderMap) -> Result<(), ApiError> {
    if is_sent_as(headers, BYTES) {
        return Ok(());
    }
    let message = format!("send the file as it is, as `Content-Type: {BYTES}`");
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message))
}

/// The kind of a file by its extension.
///
/// # Errors
/// When it is not supported.
pub(super) fn kind_of(name: &str) -> Result<DocumentKind, ApiError> {
    DocumentKind::of(Path::new(name)).ok_or_else(|| {
        let known = DocumentKind::ALL.into_iter().flat_map(DocumentKind::extensions);
        let known: Vec<String> = known.map(|extension| format!(".{extension}")).collect();
        let known = known.join(", ");
        let message = format!("files of this kind cannot be read; supported extensions: {known}");
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unknown_kind", message).param("name")
    })
}

impl Intake {
    /// Receives the bytes of a file of a user, given by tenant and id.
    ///
    /// # Errors
    /// When they are incomplete, too slow, or too many.
    pub(super) async fn take(
        &self,
        user: (String, String),
        headers: &HeaderMap,
        body: Body,
        file: impl FnOnce(Vec<u8>) -> read::File + Send + 'static,
    ) -> Result<Taken, ApiError> {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        if length.and_then(|length| length.parse().ok()).is_some_and(|length: u64| length > read::MAX_BYTES) {
            return Err(too_large());
        }
        let of_the_user = UserPlace::take(&self.users, user).ok_or_else(busy)?;
        let of_all = match Arc::clone(&self.taking).try_acquire_owned() {
            Ok(of_all) => of_all,
            Err(_) => {
                of_the_user.make_way();
                let of_all = timeout(WAITS, Arc::clone(&self.taking).acquire_owned()).await;
                of_all.ok().and_then(Result::ok).ok_or_else(busy)?
            }
        };
        of_the_user.may_give_way();
        let bytes = tokio::select! {
            bytes = timeout(COMES_IN, whole(body)) => bytes.unwrap_or_else(|_| Err(late()))?,
            () = of_the_user.given_up.notified() => return Err(busy()),
        };
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        // Hashing takes time.
        let file = spawn_blocking(move || file(bytes)).await.map_err(ToolError::from)?;
        Ok(Taken { file, size, place: Place { _of_all: of_all, of_the_user } })
    }

    /// Reads a file on the blocking thread pool, one of its user at a time.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn read(&self, file: read::File, place: &Place) -> Result<Read, ApiError> {
        self.read_by(&place.of_the_user, move || file.read()).await
    }

    async fn read_by(
        &self,
        of_the_user: &UserPlace,
        read: impl FnOnce() -> Result<Document, String> + Send + 'static,
    ) -> Result<Read, ApiError> {
        let unreadable = |reason: &str| {
            let message = format!("the file cannot be read: {reason}");
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "unreadable", message).param("body")
        };
        let permits = async {
            let of_the_user = Arc::clone(&of_the_user.reading).acquire_owned().await?;
            Ok::<_, AcquireError>([of_the_user, Arc::clone(&self.reading).acquire_owned().await?])
        };
        let permits = tokio::select! {
            permits = timeout(WAITS_TO_BE_READ, permits) => permits.ok().and_then(Result::ok),
            () = of_the_user.given_up.notified() => None,
        };
        let permits = permits.ok_or_else(busy)?;
        of_the_user.stays();
        // A thread cannot be stopped from outside: it keeps its permits until it ends.
        let reading = spawn_blocking(move || (read(), permits));
        match timeout(self.read_in, reading).await {
            Ok(Ok((Ok(document), permits))) => Ok(Read { document, permits }),
            Ok(Ok((Err(reason), _))) => Err(unreadable(&reason)),
            Ok(Err(_)) => Err(unreadable("it is damaged, or written in a way that is not understood")),
            Err(_) => Err(unreadable(&format!("it was not read in {} s", self.read_in.as_secs()))),
        }
    }
}

/// The whole body.
async fn whole(body: Body) -> Result<Vec<u8>, ApiError> {
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    let (mut due, mut until) = (PORTION, Instant::now() + PORTION_COMES_IN);
    while let Some(piece) = timeout_at(until, stream.next()).await.map_err(|_| late())? {
        let piece = piece
            .map_err(|fault| ApiError::invalid("body", format!("the file did not come whole: {fault}")))?;
        bytes.extend_from_slice(&piece);
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > read::MAX_BYTES {
            return Err(too_large());
        }
        if bytes.len() >= due {
            (due, until) = (bytes.len() + PORTION, Instant::now() + PORTION_COMES_IN);
        }
    }
    Ok(bytes)
}

/// The error when a limit of concurrent files is reached.
fn busy() -> ApiError {
    let message = "too many documents are being added at once; try again";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).retry_after(2)
}

fn late() -> ApiError {
    let message = "the file did not come in time; try again";
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", message).param("body")
}

fn too_large() -> ApiError {
    let most = read::MAX_BYTES >> 20;
    let message = format!("the file is larger than {most} MiB, which is the most that is read; split it");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message).param("body")
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, iter::repeat_n};

    use futures_util::stream;

    use super::*;

    /// What becomes of a file that comes in pieces, each of so many bytes after so many seconds, and after how many seconds.
    async fn come(pieces: impl IntoIterator<Item = (usize, u64)>) -> (Result<usize, String>, u64) {
        let pieces: Vec<_> = pieces.into_iter().collect();
        let pieces = stream::iter(pieces).then(|(bytes, seconds)| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok::<_, Infallible>(vec![b'a'; bytes])
        });
        let began = Instant::now();
        let whole = whole(Body::from_stream(pieces)).await;
        let outcome = whole.map(|bytes| bytes.len()).map_err(|refusal| format!("{refusal:?}"));
        (outcome, began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn p6_a_file_that_comes_too_slowly_is_given_up() {
        for (bytes, seconds) in [(1, 1), (1, 29), (1, 31), (PORTION / 4, 9)] {
            let (outcome, after) = come(repeat_n((bytes, seconds), 100)).await;
            assert!(
                outcome.is_err_and(|reported| reported.contains("did not come in time")),
                "{bytes} {seconds}"
            );
            assert_eq!(after, 30, "{bytes} bytes each {seconds} s");
        }
        let (outcome, after) = come([(40 * PORTION, 0)].into_iter().chain(repeat_n((1, 1), 100))).await;
        assert!(outcome.is_err() && after == 30, "a fast beginning buys no slow end");
        for (pieces, bytes, seconds) in [(29, 1, 1), (1, 1, 29), (19, PORTION, 29), (0, 0, 0)] {
            assert_eq!(come(repeat_n((bytes, seconds), pieces)).await.0, Ok(pieces * bytes));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn p6_a_file_beyond_the_places_waits_for_one_and_is_refused_after_a_while() {
        let intake = Intake::default();
        let take = async |user: usize| {
            let (user, began) = (("default".to_owned(), user.to_string()), Instant::now());
            let file = |bytes| read::File::new("a.txt", DocumentKind::Text, bytes, None);
            let taken = intake.take(user, &HeaderMap::new(), Body::from("text"), file).await;
            (taken, began.elapsed())
        };
        let mut held = Vec::new();
        for user in 0..TAKEN_AT_ONCE {
            held.push(take(user).await.0.ok().unwrap());
        }
        let (refused, after) = take(99).await;
        assert!(refused.is_err() && after >= WAITS, "{after:?}");
        let ((taken, after), ()) = tokio::join!(take(99), async {
            tokio::time::sleep(WAITS / 2).await;
            held.pop();
        });
        assert!(taken.is_ok() && after < WAITS, "{after:?}");
    }

    #[tokio::test]
    async fn p6_a_file_that_is_not_read_in_time_is_given_up_and_has_its_place_until_it_ends() {
        assert_eq!(Intake::default().read_in, READ_IN);
        let intake = Intake { read_in: Duration::from_millis(200), ..Intake::default() };
        let (goes_on, waits) = std::sync::mpsc::channel::<()>();
        let slow = move || {
            let _ = waits.recv();
            Err("of no use any more".to_owned())
        };
        let user =
            |name: &str| UserPlace::take(&intake.users, ("default".to_owned(), name.to_owned())).unwrap();
        let refused = format!("{:?}", intake.read_by(&user("ada"), slow).await.err().unwrap());
        assert!(refused.contains("422") && refused.contains("it was not read in"), "{refused}");
        // Other files are read meanwhile, as long as there is a place.
        assert_eq!(intake.reading.available_permits(), READ_AT_ONCE - 1);
        let other =
            format!("{:?}", intake.read_by(&user("bob"), || Err("empty".to_owned())).await.err().unwrap());
        assert!(other.contains("empty"), "{other}");
        drop(goes_on);
        let all = u32::try_from(READ_AT_ONCE).unwrap();
        drop(timeout(Duration::from_secs(20), intake.reading.acquire_many(all)).await.unwrap().unwrap());
    }

    #[tokio::test]
    async fn p6_slow_files_of_one_user_hold_up_nobody_else() {
        let intake = Intake::default();
        let (ends, waits) = std::sync::mpsc::channel::<()>();
        let waits = std::sync::Mutex::new(waits);
        let slow = Arc::new(move || {
            let _ = waits.lock().unwrap().recv();
            Err("slow".to_owned())
        });
        let take =
            |user: &str| UserPlace::take(&intake.users, ("default".to_owned(), user.to_owned())).unwrap();
        let ada: Vec<UserPlace> = (0..3).map(|_| take("ada")).collect();
        let slow_ones = ada.iter().map(|place| {
            let slow = Arc::clone(&slow);
            intake.read_by(place, move || slow())
        });
        let (read, ()) = tokio::join!(futures_util::future::join_all(slow_ones), async {
            let bob = take("bob");
            let quick = intake.read_by(&bob, || Err("quick".to_owned()));
            let quick = timeout(Duration::from_secs(20), quick).await.expect("bob waits for ada");
            assert!(format!("{:?}", quick.err().unwrap()).contains("quick"));
            drop(ends);
        });
        assert!(read.iter().all(Result::is_err) && read.len() == 3);
        drop(ada);
        assert!(intake.users.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a42_files_that_come_slowly_or_wait_give_way_to_those_of_others() {
        let intake = Intake::default();
        let take = async |user: String, seconds: u64| {
            let body = stream::once(async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok::<_, Infallible>("text")
            });
            let file = |bytes| read::File::new("a.txt", DocumentKind::Text, bytes, None);
            let user = ("default".to_owned(), user);
            intake.take(user, &HeaderMap::new(), Body::from_stream(body), file).await
        };
        let slow = (0..TAKEN_AT_ONCE).map(|file| take(format!("slow {}", file % 3), 25));
        let slow = futures_util::future::join_all(slow);
        let (slow, quick) = tokio::join!(slow, async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let began = Instant::now();
            let quick = take("ada".to_owned(), 0).await.map(|_| began.elapsed());
            quick.map_err(|refused| refused.to_string())
        });
        assert!(quick.as_ref().is_ok_and(|waited| *waited < Duration::from_secs(1)), "{quick:?}");
        let slow: Vec<Taken> = slow.into_iter().filter_map(Result::ok).collect();
        assert_eq!(slow.len(), TAKEN_AT_ONCE - 1, "one has given way");
        // The same of those that wait to be read, which are three of each of the three users but one.
        let _ada = take("ada".to_owned(), 0).await.ok().unwrap();
        let reading = Arc::clone(&intake.reading).acquire_many_owned(2).await.unwrap();
        let waiting = slow.into_iter().map(|taken| {
            let intake = &intake;
            async move {
                let read = intake.read_by(&taken.place.of_the_user, || Err("read".to_owned())).await;
                drop(taken);
                read.err().map(|refused| refused.to_string())
            }
        });
        let (read, bob) = tokio::join!(futures_util::future::join_all(waiting), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let bob = timeout(Duration::from_secs(1), take("bob".to_owned(), 0)).await;
            drop(reading);
            bob.is_ok_and(|taken| taken.is_ok())
        });
        assert!(bob, "bob waits");
        let refused = read.into_iter().flatten().filter(|refused| refused.contains("too many documents"));
        assert_eq!(refused.count(), 1);
    }
}
