//! Keys, and the sealing of frames: compressed if that saves room, then AES-256-GCM.
//!
//! Each attach draws a salt, and its key is HKDF-SHA256 of the master key with that salt, the
//! cache and the volume. Within an attach, no sequence of a segment comes twice and no frame of a
//! segment has the number of another one: sequence and number are the nonce, which is therefore
//! never used again with the same key. A tag proves that a frame is the one of this volume, this
//! place and this sequence; whether that sequence is the latest is known by the index.

use aes_gcm::aead::{AeadInPlace, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce};
use hkdf::Hkdf;
use sha2::{Digest, Sha256};

/// The bytes of a tag.
pub(crate) const TAG_BYTES: usize = 16;

/// Drawn anew at each attach.
pub(crate) type Salt = [u8; 32];

/// The key of a cache, with the cache and the volume that it is for.
#[derive(Clone)]
pub(crate) struct Master {
    hkdf_input: [u8; 32],
    info: [u8; 32],
}

impl std::fmt::Debug for Master {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Master")
    }
}

impl Master {
    pub(crate) fn new(key: &[u8; 32], cache_id: &[u8; 16], volume_id: &[u8; 16]) -> Self {
        let mut info = [0; 32];
        info[..16].copy_from_slice(cache_id);
        info[16..].copy_from_slice(volume_id);
        Self { hkdf_input: *key, info }
    }

    /// The cipher of the attach that drew `salt`.
    pub(crate) fn cipher(&self, salt: &Salt) -> Cipher {
        let mut key = [0; 32];
        // The only error is an output longer than 255 hashes.
        let _ = Hkdf::<Sha256>::new(Some(salt), &self.hkdf_input).expand(&self.info, &mut key);
        Cipher(Aes256Gcm::new(&key.into()))
    }
}

/// The cipher of one attach.
#[derive(Clone)]
pub(crate) struct Cipher(Aes256Gcm);

impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cipher")
    }
}

impl Cipher {
    fn nonce(sequence: u64, ordinal: u32) -> [u8; 12] {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&sequence.to_le_bytes());
        nonce[8..].copy_from_slice(&ordinal.to_le_bytes());
        nonce
    }

    /// Encrypts `data` in place; gives the tag, which covers `plain` too.
    pub(crate) fn seal(
        &self,
        sequence: u64,
        ordinal: u32,
        plain: &[u8],
        data: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let nonce = Self::nonce(sequence, ordinal);
        // The only error is a message of more than 64 GiB. A zero tag would only fail to open.
        let sealed = self.0.encrypt_in_place_detached(Nonce::from_slice(&nonce), plain, data);
        sealed.map(Into::into).unwrap_or_default()
    }

    /// Decrypts `data` in place; whether `tag` is right. If not, `data` is not to be used.
    pub(crate) fn open(
        &self,
        sequence: u64,
        ordinal: u32,
        plain: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> bool {
        let nonce = Self::nonce(sequence, ordinal);
        tag.len() == TAG_BYTES
            && self
                .0
                .decrypt_in_place_detached(Nonce::from_slice(&nonce), plain, data, tag.into())
                .is_ok()
    }
}

/// What a frame is: authenticated with it, so that none passes for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameLabel {
    /// Its number on the volume.
    pub(crate) key: u32,
    /// Its first block.
    pub(crate) first: u8,
    /// Its bytes on the volume from there on.
    pub(crate) len: u32,
    /// Whether it is compressed.
    pub(crate) is_compressed: bool,
    /// The sequence of its segment.
    pub(crate) sequence: u64,
    /// Its number in the segment.
    pub(crate) ordinal: u16,
}

impl FrameLabel {
    fn to_bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..4].copy_from_slice(&self.key.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8] = u8::from(self.is_compressed);
        bytes[9] = self.first;
        bytes
    }
}

/// Seals `payload`, which has room for the tag at its end.
pub(crate) fn seal_frame(cipher: &Cipher, label: FrameLabel, payload: &mut [u8]) {
    let (data, tag) = payload.split_at_mut(payload.len() - TAG_BYTES);
    let made = cipher.seal(label.sequence, u32::from(label.ordinal), &label.to_bytes(), data);
    tag.copy_from_slice(&made);
}

/// Opens a sealed frame in place; its payload without the tag, or `None` if it is not that frame.
pub(crate) fn open_frame<'b>(
    cipher: &Cipher,
    label: FrameLabel,
    sealed: &'b mut [u8],
) -> Option<&'b [u8]> {
    let (data, tag) = sealed.split_at_mut(sealed.len().checked_sub(TAG_BYTES)?);
    let is_it = cipher.open(label.sequence, u32::from(label.ordinal), &label.to_bytes(), data, tag);
    is_it.then_some(&*data)
}

/// Compresses and restores frames; its memory is allocated by `new`.
pub(crate) struct Codec {
    compressor: zstd::bulk::Compressor<'static>,
    decompressor: zstd::bulk::Decompressor<'static>,
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Codec")
    }
}

/// The level of compression: the quickest one. Seen: 2.18 times at 336 MB/s for 16 KiB, level 3
/// 2.27 times.
const LEVEL: i32 = 1;

impl Codec {
    /// # Errors
    /// Without memory.
    pub(crate) fn new(frame_bytes: u32) -> std::io::Result<Self> {
        let mut codec = Self {
            compressor: zstd::bulk::Compressor::new(LEVEL)?,
            decompressor: zstd::bulk::Decompressor::new()?,
        };
        // The first use allocates; the later ones find what they need.
        let plain = vec![0; frame_bytes as usize];
        let mut packed = plain.clone();
        let mut restored = plain.clone();
        if let Some(bytes) = codec.compress(&plain, &mut packed) {
            let _ = codec.restore(&packed[..bytes], &mut restored);
        }
        Ok(codec)
    }

    /// Compresses `plain` into `packed`; its bytes, or `None` if that does not save an eighth.
    pub(crate) fn compress(&mut self, plain: &[u8], packed: &mut [u8]) -> Option<usize> {
        let room = packed.len().min(plain.len() - plain.len() / 8);
        self.compressor.compress_to_buffer(plain, &mut packed[..room]).ok()
    }

    /// Restores what was compressed; whether it fills `plain`.
    pub(crate) fn restore(&mut self, packed: &[u8], plain: &mut [u8]) -> bool {
        self.decompressor.decompress_to_buffer(packed, plain).is_ok_and(|len| len == plain.len())
    }
}

/// The name of the medium of a volume's cache. It follows from the key, so that a medium with it
/// was made by a holder of the key, and nothing has to be stored first.
pub(crate) fn medium_id(key: &[u8; 32], volume_id: &[u8; 16]) -> [u8; 16] {
    let mut id = [0; 16];
    // The only error is an output longer than 255 hashes.
    let _ = Hkdf::<Sha256>::new(Some(b"medium"), key).expand(volume_id, &mut id);
    id
}

/// The first half of the SHA-256 of some bytes.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&Sha256::digest(bytes)[..16]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: FrameLabel =
        FrameLabel { key: 3, first: 1, len: 100, is_compressed: false, sequence: 8, ordinal: 2 };

    #[test]
    fn only_the_frame_that_was_sealed_opens() {
        let master = Master::new(&[1; 32], &[2; 16], &[3; 16]);
        let mut sealed = vec![5; 100 + TAG_BYTES];
        seal_frame(&master.cipher(&[4; 32]), LABEL, &mut sealed);
        let opens = |master: &Master, salt, label| {
            open_frame(&master.cipher(&[salt; 32]), label, &mut sealed.clone()).map(<[u8]>::to_vec)
        };
        assert_eq!(opens(&master, 4, LABEL), Some(vec![5; 100]));
        assert_eq!(opens(&master, 5, LABEL), None);
        assert_eq!(opens(&Master::new(&[1; 32], &[2; 16], &[4; 16]), 4, LABEL), None);
        assert_eq!(opens(&Master::new(&[1; 32], &[3; 16], &[3; 16]), 4, LABEL), None);
        for label in [
            FrameLabel { key: 4, ..LABEL },
            FrameLabel { first: 2, ..LABEL },
            FrameLabel { len: 99, ..LABEL },
            FrameLabel { is_compressed: true, ..LABEL },
            FrameLabel { sequence: 9, ..LABEL },
            FrameLabel { ordinal: 3, ..LABEL },
        ] {
            assert_eq!(opens(&master, 4, label), None);
        }
        assert_eq!(open_frame(&master.cipher(&[4; 32]), LABEL, &mut [0; 15]), None);
    }

    #[test]
    fn what_does_not_shrink_stays_raw() {
        let mut codec = Codec::new(4096).unwrap();
        let mut packed = vec![0; 4096];
        let mut random = vec![0; 4096];
        testkit::Random(1).fill(&mut random);
        assert_eq!(codec.compress(&random, &mut packed), None);
        let text = b"a frame of text ".repeat(256);
        let bytes = codec.compress(&text, &mut packed).unwrap();
        let mut restored = vec![0; 4096];
        assert!(bytes < 400 && codec.restore(&packed[..bytes], &mut restored));
        assert_eq!(restored, text);
        assert!(!codec.restore(&packed[..bytes], &mut restored[..4095]));
        assert!(!codec.restore(&random, &mut restored));
    }
}
