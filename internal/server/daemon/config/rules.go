package config

// Rules are the clients that may mount the export, each with its rule.
func (e *Export) Rules() []Client {
	all := e.Clients
	for _, match := range e.Allow {
		all = append(all[:len(all):len(all)], Client{Match: match, Rule: e.Rule})
	}
	if len(all) == 0 {
		all = []Client{{Match: "*", Rule: e.Rule}}
	}
	return all
}

// AllReadOnly reports whether no client may change anything.
func (e *Export) AllReadOnly() bool {
	for _, client := range e.Rules() {
		if !IsSet(client.ReadOnly) {
			return false
		}
	}
	return true
}

func IsSet(b *bool) bool { return b != nil && *b }
