// Package nic and the packages below it are the devices that own rings: real
// and software 8254x chips, kernel interfaces, files. They know nothing of
// forwarding.
package nic
