#[derive(Debug)]
pub struct Zone;
