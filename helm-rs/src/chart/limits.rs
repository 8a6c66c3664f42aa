//! Bounds on what loading a chart may cost.

/// Bounds on what loading one chart may cost. The two size limits are Helm's
/// (`pkg/chart/loader/archive.go`); the others are ours, far above any real chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files of one archive after decompression (100 MiB, Helm's
    /// `MaxDecompressedChartSize`). An archive inside `charts/` has the limit of its own.
    pub chart_size: u64,
    /// Bytes of one file (5 MiB, Helm's `MaxDecompressedFileSize`).
    pub file_size: u64,
    /// Bytes of a compressed archive read from disk (100 MiB).
    pub archive_size: u64,
    /// Entries in one archive, or files in one directory tree, links followed (100,000).
    pub file_count: usize,
    /// Bytes of all files under one directory, links followed (256 MiB). Helm has no such limit,
    /// and needs none until links multiply a tree.
    pub directory_size: u64,
    /// Levels of directories, links followed (100).
    pub directory_depth: usize,
    /// Levels of charts in `charts/` (32).
    pub chart_depth: usize,
    /// Bytes of all files of a chart and all its packed subcharts together (512 MiB): an archive
    /// may hold archives, each within its own limit.
    pub total_size: u64,
    /// Whether links in a chart directory may lead out of it (true, as in Helm).
    pub links_outside: bool,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            chart_size: 100 * MIB,
            file_size: 5 * MIB,
            archive_size: 100 * MIB,
            file_count: 100_000,
            directory_size: 256 * MIB,
            directory_depth: 100,
            chart_depth: 32,
            total_size: 512 * MIB,
            links_outside: true,
        }
    }
}
