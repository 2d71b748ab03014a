package daemon

// somebody has an address, and it is not known who.
const somebody = "another process has it; end it, or"
