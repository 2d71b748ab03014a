package daemon

// somebody is what is said of an address if the process that has it is unknown.
const somebody = "another process has it; end it, or"
