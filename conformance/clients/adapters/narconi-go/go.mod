module adapter

go 1.23

require fakebrokers/kit v0.0.0

replace fakebrokers/kit => ../../adapter/kits/go
